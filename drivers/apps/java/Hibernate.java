import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.LockModeType;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.hibernate.engine.jdbc.connections.spi.MultiTenantConnectionProvider;

/** Hibernate over HikariCP: one factory, each client a tenant with its own pool; ids from sequences, as JPA has them. */
public final class Hibernate extends Jdbc {
    static final Map<String, Hibernate> TENANTS = new ConcurrentHashMap<>();
    static SessionFactory factory;

    public Hibernate(Map<String, String> who) {
        super(who);
        TENANTS.put(who.get("schema"), this);
    }

    public static final class Pools implements MultiTenantConnectionProvider<String> {
        @Override public Connection getAnyConnection() throws SQLException { throw new SQLException("no tenant"); }
        @Override public void releaseAnyConnection(Connection db) throws SQLException { db.close(); }
        @Override public Connection getConnection(String tenant) throws SQLException { return TENANTS.get(tenant).pool.getConnection(); }
        @Override public void releaseConnection(String tenant, Connection db) throws SQLException { db.close(); }
        @Override public boolean supportsAggressiveRelease() { return false; }
        @Override public boolean isUnwrappableAs(Class<?> type) { return false; }
        @Override public <T> T unwrap(Class<T> type) { return null; }
    }

    static synchronized SessionFactory factory() {
        if (factory == null) {
            String dialect = switch (KIND) {
                case "postgres" -> "PostgreSQLDialect";
                case "mariadb" -> "MariaDBDialect";
                default -> "MySQLDialect";
            };
            factory = new Configuration().addAnnotatedClass(Author.class).addAnnotatedClass(Book.class)
                .setProperty("hibernate.dialect", "org.hibernate.dialect." + dialect).setProperty("hibernate.boot.allow_jdbc_metadata_access", "false")
                .setProperty("hibernate.multi_tenant_connection_provider", Pools.class.getName()).buildSessionFactory();
        }
        return factory;
    }

    @Entity(name = "Author") @Table(name = "authors") public static class Author {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "authors") @SequenceGenerator(name = "authors", sequenceName = "authors_seq", allocationSize = 5) Long id;
        @Column(unique = true) String name;
        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true) List<Book> books = new ArrayList<>();
    }

    @Entity(name = "Book") @Table(name = "books") public static class Book {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "books") @SequenceGenerator(name = "books", sequenceName = "books_seq", allocationSize = 5) Long id;
        @ManyToOne Author author;
        String title;
        BigDecimal price;
    }

    List<String> tables() {
        List<String> out = new ArrayList<>();
        out.add("CREATE TABLE authors (id bigint PRIMARY KEY, name varchar(100) UNIQUE)");
        out.add("CREATE TABLE books (id bigint PRIMARY KEY, author_id bigint REFERENCES authors (id), title varchar(100), price decimal(10, 2))");
        for (String name : List.of("authors_seq", "books_seq")) {
            if (KIND.equals("mysql")) {
                out.add("CREATE TABLE " + name + " (next_val bigint)");
                out.add("INSERT INTO " + name + " VALUES (1)");
            } else {
                out.add("CREATE SEQUENCE " + name + " START WITH 1 INCREMENT BY 5");
            }
        }
        return out;
    }

    @Override public Object orm() throws Exception {
        for (String statement : tables()) execute(statement, List.of());
        List<Object> seen = new ArrayList<>();
        String name = who.get("application");
        try (Session session = factory().withOptions().tenantIdentifier(who.get("schema")).openSession()) {
            session.beginTransaction();
            for (int n = 0; n < 3; n++) {
                Author author = new Author();
                author.name = name + " " + n;
                for (int k = 0; k < 3; k++) {
                    Book book = new Book();
                    book.author = author;
                    book.title = n + "." + k;
                    book.price = BigDecimal.valueOf(k);
                    author.books.add(book);
                }
                session.persist(author);
            }
            session.getTransaction().commit();
            session.clear();
            session.beginTransaction();
            for (Author author : session.createQuery("from Author a order by a.name", Author.class).list()) {
                seen.add(List.of(author.id, author.name, author.books.size()));
            }
            Author locked = session.createQuery("from Author a where a.name = :name", Author.class).setParameter("name", name + " 1")
                .setLockMode(LockModeType.PESSIMISTIC_WRITE).getSingleResult();
            locked.name = name + " changed";
            session.flush();
            seen.add(session.createMutationQuery("update Book b set b.price = b.price * 2 where b.price >= 1").executeUpdate());
            session.getTransaction().commit();
            session.beginTransaction();
            session.remove(session.find(Author.class, locked.id));
            session.flush();
            session.getTransaction().rollback();
            session.clear();
            seen.add(String.valueOf(session.createQuery("select sum(b.price) from Book b", BigDecimal.class).getSingleResult()));
            session.beginTransaction();
            try {
                Author twice = new Author();
                twice.name = name + " changed";
                session.persist(twice);
                session.flush();
            } catch (RuntimeException e) {
                seen.add(describe(e));
            }
            session.getTransaction().rollback();
        }
        for (String table : List.of("books", "authors")) execute("DROP TABLE " + table, List.of());
        for (String sequence : List.of("authors_seq", "books_seq")) execute((KIND.equals("mysql") ? "DROP TABLE " : "DROP SEQUENCE ") + sequence, List.of());
        return seen;
    }
}
