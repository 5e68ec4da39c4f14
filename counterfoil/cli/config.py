"""`counterfoil config`: every setting, its value, and where that comes from."""

import click

from counterfoil.cli.options import Common, example, with_settings
from counterfoil.cli.output import print_json, print_table, say
from indexer.settings import PREFIX, Settings, variable_of


@click.command(epilog=example("counterfoil config"))
@with_settings(*Settings.model_fields)
def config(common: Common) -> None:
    """Show every setting and where it comes from: a flag, the environment, the file, or the default.

    URLs are shown without user, password, path and query: keys stand in those.
    """
    values, origins = common.settings.shown(), common.loaded.origins
    if common.json:
        rows = {name: {"value": values[name], "from": origins[name]} for name in values}
        print_json({"settings": rows, "ignored": list(common.loaded.ignored)})
        return
    print_table(("setting", "value", "from"), ((name, values[name], origins[name]) for name in values))
    say(f"A setting's variable is {PREFIX} and its name in capitals, such as {variable_of('home')}.")
    if common.loaded.ignored:
        say(f"no settings, and ignored: {', '.join(common.loaded.ignored)}")
