"""A pytest plugin for mutants: the first failing example is enough, so hypothesis neither shrinks nor remembers it."""

from hypothesis import Phase, settings

settings.register_profile("default", phases=(Phase.explicit, Phase.generate), database=None)
settings.load_profile("default")
