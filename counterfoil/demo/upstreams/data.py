"""A plain JSON API for prices: `POST /price` with `{"symbol": "BTC"}`, or `GET /price?symbol=BTC`."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from counterfoil.demo.upstreams.asked import BadRequestError, asked
from counterfoil.demo.upstreams.figures import figure

SYMBOLS = ("ADA", "BTC", "DOGE", "ETH", "SOL", "USDC", "XRP")
MOST_CENTS = 10_000_000


def price_usd(symbol: str) -> str:
    """The price of a symbol in US dollars, with two decimals."""
    dollars, cents = divmod(1 + figure(symbol, MOST_CENTS), 100)
    return f"{dollars}.{cents:02}"


def create_app() -> Starlette:
    """The API; an unknown symbol is 404, a request that names none is 400."""

    async def price(request: Request) -> Response:
        named = dict(request.query_params) if request.method == "GET" else await asked(request)
        symbol = named.get("symbol")
        if not isinstance(symbol, str):
            raise BadRequestError('Name a symbol: {"symbol": "BTC"}.')
        if symbol not in SYMBOLS:
            return _error(404, f"There is no price of this symbol: ask for one of {', '.join(SYMBOLS)}.")
        return JSONResponse({"symbol": symbol, "price_usd": price_usd(symbol)})

    return Starlette(
        routes=[Route("/price", price, methods=["GET", "POST"])],
        exception_handlers={BadRequestError: lambda _, error: _error(400, str(error))},
    )


def _error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message}}, status_code=status)
