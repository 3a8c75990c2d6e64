"""A Django project in one file: a database for each client, two models."""

import threading

from apps import WHERE

lock = threading.Lock()
made = {}


def database(who):
    """DATABASES' entry of one client."""
    common = {"HOST": WHERE["host"], "PORT": WHERE["port"], "USER": WHERE["user"], "PASSWORD": WHERE["password"], "CONN_MAX_AGE": None,
              "TIME_ZONE": who["zone"], "CONN_HEALTH_CHECKS": True}
    if WHERE["kind"] == "postgres":
        return {**common, "ENGINE": "django.db.backends.postgresql", "NAME": WHERE["db"], "OPTIONS": {
            "options": f"-c search_path={who['schema']}", "application_name": who["application"], "sslmode": "disable"}}
    return {**common, "ENGINE": "django.db.backends.mysql", "NAME": who["schema"], "OPTIONS": {
        "charset": "utf8mb4", "init_command": f"SET sql_mode = '{who['sql_mode']}', time_zone = '{who['offset']}'", "local_infile": True, "isolation_level": "read committed"}}


def connection(who):
    """Each thread has its own connection by Django's own doing; a client stays in its thread."""
    import django
    from django.conf import settings
    from django.db import connections
    with lock:
        if not settings.configured:
            settings.configure(DATABASES={"default": database(who)}, USE_TZ=True, INSTALLED_APPS=["django_app"], DEFAULT_AUTO_FIELD="django.db.models.BigAutoField")
            django.setup()
            models()
        if who["application"] not in connections.settings:
            connections.settings[who["application"]] = connections.configure_settings({"default": database(who)})["default"]
    return connections[who["application"]]


def models():
    from django.db import models as m

    class Author(m.Model):
        name = m.CharField(max_length=100, unique=True)

        class Meta:
            app_label = "django_app"
            db_table = "authors"

    class Book(m.Model):
        author = m.ForeignKey(Author, m.CASCADE, related_name="books")
        title = m.CharField(max_length=100)
        price = m.DecimalField(max_digits=10, decimal_places=2, default=1)
        at = m.DateTimeField(null=True)

        class Meta:
            app_label = "django_app"
            db_table = "books"

    made.update(Author=Author, Book=Book)


def orm(db, who):
    import datetime
    from django.db import IntegrityError, transaction
    from django.db.models import Count, F, Sum
    Author, Book = made["Author"], made["Book"]
    alias = db.alias
    with db.schema_editor() as editor:
        editor.create_model(Author)
        editor.create_model(Book)
    seen = [sorted(db.introspection.table_names())]
    authors, books = Author.objects.using(alias), Book.objects.using(alias)
    with transaction.atomic(using=alias):
        for n in range(3):
            author = authors.create(name=f"{who['application']} {n}")
            books.bulk_create([Book(author=author, title=f"{n}.{k}", price=k, at=datetime.datetime(2024, 6, k + 1, 12, tzinfo=datetime.timezone.utc))
                               for k in range(3)])
    seen.append([authors.get_or_create(name="inner")[1], authors.get_or_create(name="inner")[1]])
    try:
        with transaction.atomic(using=alias):
            authors.create(name="inner")
    except IntegrityError as e:
        seen.append(str(e.__cause__).split("\n")[0])
    seen.append(list(authors.annotate(n=Count("books")).order_by("name").values_list("name", "n")))
    seen.append(books.filter(price__gte=1).update(price=F("price") * 2))
    seen.append(str(books.aggregate(all=Sum("price"))["all"]))
    with transaction.atomic(using=alias):
        seen.append([str(b.at) for b in books.select_for_update().filter(author__name=f"{who['application']} 1").order_by("id")])
    seen.append([b.title for b in books.order_by("-id").iterator(chunk_size=2)])
    seen.append(list(books.dates("at", "month")))
    seen.append(authors.filter(name="inner").delete()[0])
    with db.schema_editor() as editor:
        editor.delete_model(Book)
        editor.delete_model(Author)
    return seen
