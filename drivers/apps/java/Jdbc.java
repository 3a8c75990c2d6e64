import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.StringReader;
import java.io.StringWriter;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** HikariCP over pgjdbc, MySQL's Connector/J or MariaDB's: a connection is taken from the pool for each piece of work and given back. */
class Jdbc implements Apps.Adapter {
    static final String KIND = System.getenv("T_KIND");
    static final String DRIVER = System.getenv("T_FRAMEWORK").split("\\.")[1];

    final Map<String, String> who;
    HikariDataSource pool;
    Connection inside;
    volatile Statement running;

    Jdbc(Map<String, String> who) {
        this.who = who;
    }

    static String env(String name) {
        return System.getenv("T_" + name);
    }

    HikariConfig config() {
        HikariConfig config = new HikariConfig();
        String at = env("HOST") + ":" + env("PORT") + "/";
        config.setUsername(env("USER"));
        config.setPassword(env("PASSWORD"));
        config.setMaximumPoolSize(1);
        config.setConnectionTimeout(120_000);
        config.setInitializationFailTimeout(120_000);
        switch (DRIVER) {
            case "pgjdbc" -> {
                config.setJdbcUrl("jdbc:postgresql://" + at + env("DB") + "?sslmode=disable&ApplicationName=" + who.get("application").replace(" ", "%20"));
                config.setSchema(who.get("schema"));
                config.setConnectionInitSql("SET TIME ZONE '" + who.get("zone") + "'");
            }
            case "connector_j" -> {
                config.setJdbcUrl("jdbc:mysql://" + at + who.get("schema") + "?useSSL=false&allowPublicKeyRetrieval=true&allowLoadLocalInfile=true&useServerPrepStmts=true"
                    + "&cachePrepStmts=true&rewriteBatchedStatements=true");
                config.setConnectionInitSql("SET time_zone = '" + who.get("offset") + "', sql_mode = '" + who.get("sql_mode") + "'");
            }
            case "mariadb" -> {
                config.setJdbcUrl("jdbc:mariadb://" + at + who.get("schema") + "?sslMode=disable&allowPublicKeyRetrieval=true&allowLocalInfile=true&useServerPrepStmts=true");
                config.setConnectionInitSql("SET time_zone = '" + who.get("offset") + "', sql_mode = '" + who.get("sql_mode") + "'");
            }
            default -> throw new IllegalArgumentException(DRIVER);
        }
        return config;
    }

    @Override public void open() throws Exception {
        pool = new HikariDataSource(config());
        query("SELECT 1", List.of());
    }

    @Override public void close() {
        pool.close();
    }

    interface Work<T> { T with(Connection db) throws Exception; }

    <T> T work(Work<T> work) throws Exception {
        if (inside != null) return work.with(inside);
        try (Connection db = pool.getConnection()) {
            return work.with(db);
        }
    }

    @Override public Object execute(String sql, List<?> params) throws Exception {
        return work(db -> {
            try (Statement statement = params.isEmpty() ? db.createStatement() : db.prepareStatement(sql)) {
                start(statement, sql, params);
                return statement.getUpdateCount();
            }
        });
    }

    boolean start(Statement statement, String sql, List<?> params) throws SQLException {
        running = statement;
        if (!(statement instanceof PreparedStatement prepared)) return statement.execute(sql);
        for (int i = 0; i < params.size(); i++) prepared.setObject(i + 1, params.get(i));
        return prepared.execute();
    }

    static List<List<Object>> rows(Statement statement) throws SQLException {
        List<List<Object>> out = new ArrayList<>();
        try (ResultSet found = statement.getResultSet()) {
            if (found == null) return out;
            int width = found.getMetaData().getColumnCount();
            while (found.next()) {
                List<Object> row = new ArrayList<>();
                for (int i = 1; i <= width; i++) row.add(found.getObject(i));
                out.add(row);
            }
        }
        return out;
    }

    @Override public List<List<Object>> query(String sql, List<?> params) throws Exception {
        return work(db -> {
            try (Statement statement = params.isEmpty() ? db.createStatement() : db.prepareStatement(sql)) {
                start(statement, sql, params);
                return rows(statement);
            }
        });
    }

    @Override public List<List<Object>> stream(String sql) throws Exception {
        try (Connection db = pool.getConnection()) {
            db.setAutoCommit(false);
            try (PreparedStatement statement = db.prepareStatement(sql, ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY)) {
                statement.setFetchSize(DRIVER.equals("connector_j") ? Integer.MIN_VALUE : 500);
                statement.execute();
                return rows(statement);
            } finally {
                db.commit();
            }
        }
    }

    /** As Spring's transaction manager does: autocommit off, work, commit, autocommit on. */
    @Override public void transaction(Apps.Body body, boolean commit) throws Exception {
        try (Connection db = pool.getConnection()) {
            db.setAutoCommit(false);
            inside = db;
            try {
                body.run();
            } finally {
                inside = null;
                if (commit) db.commit();
                else db.rollback();
                db.setAutoCommit(true);
            }
        }
    }

    @Override public void savepoint(Apps.Body body, boolean release) throws Exception {
        Savepoint point = inside.setSavepoint("apps");
        body.run();
        if (release) inside.releaseSavepoint(point);
        else inside.rollback(point);
    }

    @Override public void cancel() throws Exception {
        running.cancel();
    }

    @Override public List<Object> describe(Throwable error) {
        Throwable under = error;
        while (!(under instanceof SQLException) && under.getCause() != null) under = under.getCause();
        // Which of the two Connector/J throws when a statement is cancelled depends on which of its threads comes first.
        if (under instanceof com.mysql.cj.jdbc.exceptions.MySQLStatementCancelledException
            || under instanceof com.mysql.cj.jdbc.exceptions.MySQLQueryInterruptedException) return List.of("cancelled");
        if (under instanceof SQLException e) {
            // MariaDB's connector writes the number of the connection in front.
            String text = String.valueOf(e.getMessage()).replaceFirst("^\\(conn=\\d+\\) ", "").split("\n")[0];
            return Arrays.asList(error.getClass().getSimpleName() + " " + e.getClass().getSimpleName(), e.getSQLState(), e.getErrorCode(), text);
        }
        return Arrays.asList(error.getClass().getName(), null, null, String.valueOf(error.getMessage()));
    }

    @Override public Object copyIn(String sql, String text) throws Exception {
        return work(db -> db.unwrap(org.postgresql.PGConnection.class).getCopyAPI().copyIn(sql, new StringReader(text)));
    }

    @Override public Object copyOut(String sql) throws Exception {
        StringWriter out = new StringWriter();
        return work(db -> {
            db.unwrap(org.postgresql.PGConnection.class).getCopyAPI().copyOut(sql, out);
            return out.toString();
        });
    }

    @Override public Object listen(String channel, String payload) throws Exception {
        return work(db -> {
            org.postgresql.PGConnection pg = db.unwrap(org.postgresql.PGConnection.class);
            execute(db, "LISTEN " + channel);
            try (PreparedStatement notify = db.prepareStatement("SELECT pg_notify(?, ?)")) {
                notify.setString(1, channel);
                notify.setString(2, payload);
                notify.execute();
            }
            var heard = pg.getNotifications(30_000);
            execute(db, "UNLISTEN " + channel);
            return heard == null || heard.length == 0 ? null : heard[0].getParameter();
        });
    }

    static void execute(Connection db, String sql) throws SQLException {
        try (Statement statement = db.createStatement()) {
            statement.execute(sql);
        }
    }
}
