"""The page's routes: HTML for people, the same values as JSON for programs, and nothing that changes anything.

Who may see it is the caller's to say: `guards` are FastAPI dependencies that stand before every route.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from penstock.errors import ConfigError, LedgerError, PenstockError
from penstock.lsn import Lsn
from penstock.page import format
from penstock.page.listing import Wanted, pipeline_list, runbook_list, table_list
from penstock.page.queries import SPANS, Deployment
from penstock.page.runbook_pages import DOCS, RUNBOOKS, Documents
from penstock.printable import printable
from penstock.units import sentence

_HERE = Path(__file__).parent
_STATIC = {str(path.relative_to(_HERE / "static")): path for path in (_HERE / "static").rglob("*") if path.is_file()}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "frame-ancestors 'self'; base-uri 'none'; form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_REFRESH_SECONDS = 5
_NOT_FOUND = ("config-invalid", "table-unknown")

Hours = Annotated[int, Query(description="hours that the charts span", ge=1, le=720)]


def _part(q: str = "", sort: str = "", page: int = 1) -> Wanted:
    return Wanted(q, sort, page)


Part = Annotated[Wanted, Depends(_part)]
"""Which part of the page's list is asked for."""


def build(deployment: Deployment, documents: Documents, guards: Sequence[Callable[..., Any]]) -> FastAPI:
    """Return the application; no route of it, assets included, is open to whom a guard refuses."""
    app = FastAPI(title="Penstock CDC", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(_assets(), dependencies=[Depends(guard) for guard in guards])
    app.include_router(_json(deployment), prefix="/api", dependencies=[Depends(guard) for guard in guards])
    app.include_router(_html(deployment, documents), dependencies=[Depends(guard) for guard in guards])
    for kind in (ConfigError, LedgerError):
        app.add_exception_handler(kind, _explain(documents))
    app.add_exception_handler(HTTPException, _to_login)
    return app


async def _to_login(request: Request, error: Exception) -> Response:
    """Lead a person without a login to Airflow's, and back to what an alert's link named; a program is told what it lacks."""
    assert isinstance(error, HTTPException)  # noqa: S101  # registered for these only
    is_person = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    is_whole_page = request.headers.get("sec-fetch-dest", "document") == "document"
    if error.status_code != HTTPStatus.UNAUTHORIZED or not (is_person and is_whole_page):
        return await http_exception_handler(request, error)
    airflow = request.scope.get("root_path", "").rpartition("/")[0]
    return RedirectResponse(
        f"{airflow}/api/v2/auth/login?{urlencode({'next': str(request.url)})}", HTTPStatus.SEE_OTHER
    )


def _html(deployment: Deployment, documents: Documents) -> APIRouter:
    router = APIRouter(default_response_class=HTMLResponse)

    @router.get("/")
    def overview(request: Request, part: Part) -> Response:
        shown = deployment.overview()
        pipelines = pipeline_list(shown.pipelines, part)
        return _page(request, "overview", documents, shown=shown, pipelines=pipelines)

    @router.get("/pipelines/{name}")
    def pipeline(request: Request, name: str, part: Part, hours: Hours = 24) -> Response:
        shown = deployment.pipeline(name)
        tables = table_list(shown["tables"], part)
        return _page(request, "pipeline", documents, shown=shown, tables=tables, hours=hours, spans=SPANS)

    @router.get("/pipelines/{name}/tables/{oid}")
    def table(request: Request, name: str, oid: int, hours: Hours = 24) -> Response:
        shown = deployment.table(name, oid)
        return _page(request, "table", documents, shown=shown, hours=hours, spans=SPANS)

    @router.get(f"/{RUNBOOKS}")
    def runbook_index(request: Request, part: Part) -> Response:
        return _page(request, "runbooks", documents, found=runbook_list(documents.runbooks(), part))

    @router.get(f"/{RUNBOOKS}/{{name}}")
    def runbook(request: Request, name: str) -> Response:
        return _document(request, documents, RUNBOOKS, name)

    @router.get(f"/{DOCS}/{{name}}")
    def document(request: Request, name: str) -> Response:
        return _document(request, documents, DOCS, name)

    return router


def _json(deployment: Deployment) -> APIRouter:
    router = APIRouter()

    @router.get("/pipelines")
    def overview() -> JSONResponse:
        return _plain(deployment.overview())

    @router.get("/pipelines/{name}")
    def pipeline(name: str) -> JSONResponse:
        return _plain(deployment.pipeline(name))

    @router.get("/pipelines/{name}/series")
    def series(name: str, hours: Hours = 24) -> JSONResponse:
        return _plain(deployment.series(name, hours))

    @router.get("/pipelines/{name}/tables/{oid}")
    def table(name: str, oid: int) -> JSONResponse:
        return _plain(deployment.table(name, oid))

    @router.get("/pipelines/{name}/tables/{oid}/series")
    def table_series(name: str, oid: int, hours: Hours = 24) -> JSONResponse:
        return _plain(deployment.table_series(name, oid, hours))

    return router


def _assets() -> APIRouter:
    router = APIRouter()

    @router.get("/static/{path:path}")
    def asset(path: str) -> Response:
        if path not in _STATIC:
            return Response(status_code=HTTPStatus.NOT_FOUND)
        return FileResponse(_STATIC[path], headers={**_HEADERS, "Cache-Control": "private, max-age=31536000"})

    return router


def _document(request: Request, documents: Documents, kind: str, name: str) -> Response:
    html = documents.html(kind, name)
    status = HTTPStatus.OK if html is not None else HTTPStatus.NOT_FOUND
    return _page(request, "document", documents, status, kind=kind, name=name, html=html)


def _page(
    request: Request, template: str, documents: Documents, status: HTTPStatus = HTTPStatus.OK, **values: Any
) -> Response:
    base = str(request.scope.get("root_path", ""))
    text = _templates().get_template(f"{template}.html").render(
        base=base, airflow=base.rpartition("/")[0], runbooks=documents.names(RUNBOOKS), refresh=_REFRESH_SECONDS, **values
    )  # fmt: skip
    return HTMLResponse(text, status_code=int(status), headers=_HEADERS)


def _plain(model: Any) -> JSONResponse:
    """Answer with a model's fields; positions are text, as PostgreSQL writes them."""
    from fastapi.encoders import jsonable_encoder  # noqa: PLC0415

    return JSONResponse(jsonable_encoder(model, custom_encoder={Lsn: str}), headers=_HEADERS)


def _explain(documents: Documents) -> Callable[[Request, Exception], Response]:
    """Answer an error of ours with its message and its runbook; programs get the same as JSON."""

    def explain(request: Request, error: Exception) -> Response:
        assert isinstance(error, PenstockError)  # noqa: S101  # registered for these only
        status = HTTPStatus.NOT_FOUND if error.slug in _NOT_FOUND else HTTPStatus.SERVICE_UNAVAILABLE
        if "/api/" in request.url.path:
            said = {"slug": error.slug, "message": error.message, "runbook": error.runbook}
            return JSONResponse(said, status_code=int(status), headers=_HEADERS)
        return _page(request, "problem", documents, status, slug=error.slug, message=error.message)

    return explain


def _finalize(value: Any) -> Any:
    """Show a text of anybody's as one that does nothing; what is markup already is ours."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_finalize,
    )
    filters = (format.size, format.count, format.several, format.span, format.age, format.moment)
    said = {each.__name__: each for each in (*filters, sentence)}
    environment.filters |= said
    environment.globals["version"] = _version
    return environment


@cache
def _version(path: str) -> str:
    """Name an asset's content, so that a browser may keep it for ever."""
    return hashlib.sha256(_STATIC[path].read_bytes()).hexdigest()[:12]
