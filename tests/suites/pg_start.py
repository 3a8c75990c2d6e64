"""What PostgreSQL makes of a startup packet where settings are stored for a database or a role: direct and through Weir."""

import contextlib
import functools

from weirtest.case import eventually, weir
from weirtest.pgwire import Wire
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["postgres"]
# A packet is read before what is stored: the missing part comes from postgresql.conf (ISO, MDY).
STARTS = [{"DateStyle": "ISO"}, {"DateStyle": "SQL"}, {"DateStyle": "YMD"}, {"DateStyle": ""}, {"DateStyle": "ISO, DMY"}, {},
          {"DateStyle": "sql", "options": "-c datestyle=german", "application_name": "caf\u00e9"}, {"DateStyle": "ISO", "work_mem": "3MB"}]
ASK = "select current_setting('DateStyle'), to_char(date '02/03/04', 'YYYY-MM-DD'), current_setting('work_mem'), current_setting('application_name')"


@functools.cache
def server():
    return PrivateServer("postgres")


def said(target, start):
    with Wire(target, start) as wire:
        return [wire.ask(ASK), wire.ask("set DateStyle = 'German'"), wire.ask(ASK), wire.ask("reset DateStyle"), wire.ask(ASK)]


@contextlib.contextmanager
def stored(what):
    """`what`: whose."""
    with Wire(server().superuser()) as admin:
        admin.ask(f"alter {what} set datestyle = 'Postgres, DMY'")
        try:
            yield
        finally:
            admin.ask(f"alter {what} reset datestyle")


@weir
def a_datestyle_named_in_part_is_completed_from_the_configuration(_):
    for what in ("database app", "role all"):
        for pool_size in (1, 2):
            # The first to come finds no server, the others do.
            with stored(what), Weir.before("postgres", port=server().port, pool_size=pool_size, settings=["workers=1"]) as w:
                for _again in range(2):
                    for start in STARTS:
                        direct, through = said(server().direct(), start), said(w.target(), start)
                        assert direct == through, (what, pool_size, start, direct, through)


@weir
def what_is_stored_later_holds_for_who_comes_later(_):
    with Weir.before("postgres", port=server().port, pool_size=2, settings=["workers=1", "pool.catalogue_check_interval=100ms"]) as w:
        for start in STARTS:
            assert said(server().direct(), start) == said(w.target(), start), start
        with stored("database app"):
            # It may be noticed a moment later.
            eventually(lambda: said(w.target(), {}) == said(server().direct(), {}), "what is stored is noticed")
            for start in STARTS:
                direct, through = said(server().direct(), start), said(w.target(), start)
                assert direct == through, (start, direct, through)


@weir
def one_login_is_enough_to_know(_):
    with stored("database app"), Weir.before("postgres", port=server().port, pool_size=2, settings=["workers=1"]) as w:
        said(w.target(), {})
        said(w.target(), {"DateStyle": "ISO"})
        before = w.metric("weir_server_connects", outcome="ok")
        for n in range(20):
            said(w.target(), {"DateStyle": "iso", "work_mem": f"{n + 1}MB"})
        assert w.metric("weir_server_connects", outcome="ok") == before
    with Weir.before("postgres", port=server().port, pool_size=2, settings=["workers=1"]) as w:
        said(w.target(), {})
        before = w.metric("weir_server_connects", outcome="ok")
        said(w.target(), {"DateStyle": "ISO"})
        assert w.metric("weir_server_connects", outcome="ok") == before
