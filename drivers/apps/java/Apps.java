import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * An application-shaped program in Java: plays the steps that it is told in many clients at once. What apps.py does in Python. T_FRAMEWORK names
 * the adapter. Each client has a thread of its own, as in an application server.
 */
public final class Apps {
    static final Gson JSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    static final PrintStream OUT = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), true, StandardCharsets.UTF_8);
    static final ScheduledExecutorService CANCELS = Executors.newScheduledThreadPool(8, Apps::daemon);

    static Thread daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    }

    /** What a framework must be able to do; it knows one client. */
    interface Adapter {
        void open() throws Exception;
        void close() throws Exception;
        Object execute(String sql, List<?> params) throws Exception;
        List<List<Object>> query(String sql, List<?> params) throws Exception;
        void transaction(Body body, boolean commit) throws Exception;
        void savepoint(Body body, boolean release) throws Exception;
        void cancel() throws Exception;
        List<Object> describe(Throwable error);
        List<List<Object>> stream(String sql) throws Exception;
        default Object orm() throws Exception { return null; }
        default Object copyIn(String sql, String text) throws Exception { throw new UnsupportedOperationException(); }
        default Object copyOut(String sql) throws Exception { throw new UnsupportedOperationException(); }
        default Object listen(String channel, String payload) throws Exception { throw new UnsupportedOperationException(); }
    }

    interface Body { void run() throws Exception; }

    record Client(Adapter adapter, ExecutorService thread) {
        List<Object> all(List<List<Object>> steps) {
            List<Object> seen = new ArrayList<>();
            for (List<Object> step : steps) {
                try {
                    seen.add(one(step));
                } catch (Exception e) {
                    seen.add(Map.of("error", adapter.describe(e)));
                }
            }
            return seen;
        }

        @SuppressWarnings("unchecked")
        Object one(List<Object> step) throws Exception {
            String what = (String) step.get(0);
            String text = step.size() > 1 && step.get(1) instanceof String s ? s : null;
            switch (what) {
                case "open": adapter.open(); return null;
                case "close": adapter.close(); return null;
                case "reconnect": adapter.close(); adapter.open(); return null;
                case "execute": return adapter.execute(text, params(step.get(2)));
                case "query": return plain(adapter.query(text, params(step.get(2))));
                case "prepared": {
                    List<Object> seen = new ArrayList<>();
                    for (Object run : (List<Object>) step.get(2)) seen.add(plain(adapter.query(text, params(run))));
                    return seen;
                }
                case "fails": return fails(text, params(step.get(2)));
                case "transaction":
                case "savepoint": {
                    List<Object> seen = new ArrayList<>();
                    Body body = () -> seen.addAll(all((List<List<Object>>) step.get(1)));
                    if (what.equals("transaction")) adapter.transaction(body, (Boolean) step.get(2));
                    else adapter.savepoint(body, (Boolean) step.get(2));
                    return seen;
                }
                case "queue": return queue(text, (String) step.get(2));
                case "migrate":
                    adapter.transaction(() -> {
                        for (Object statement : (List<Object>) step.get(1)) adapter.execute((String) statement, List.of());
                    }, true);
                    return null;
                case "orm": return plain(adapter.orm());
                case "stream": {
                    List<List<Object>> rows = adapter.stream(text);
                    int total = 0;
                    for (List<Object> row : rows) total = total * 31 + String.valueOf(plain(row.get(row.size() - 1))).hashCode();
                    return List.of(rows.size(), total);
                }
                case "copy_in": return adapter.copyIn(text, (String) step.get(2));
                case "copy_out": return adapter.copyOut(text);
                case "listen": return adapter.listen(text, (String) step.get(2));
                case "load": return load(text, (String) step.get(2));
                case "cancel": return cancel(text);
                default: throw new IllegalArgumentException(what);
            }
        }

        Object fails(String sql, List<Object> params) {
            try {
                adapter.query(sql, params);
                return "no error";
            } catch (Exception e) {
                return adapter.describe(e);
            }
        }

        /** A worker of a job queue: takes and does jobs until there are none. */
        Object queue(String take, String done) throws Exception {
            List<List<Object>> found = new ArrayList<>();
            do {
                found.clear();
                adapter.transaction(() -> {
                    found.addAll(adapter.query(take, List.of()));
                    for (List<Object> row : found) adapter.execute(done, List.of(row.get(0)));
                }, true);
            } while (!found.isEmpty());
            return null;
        }

        Object load(String sql, String rows) throws Exception {
            Path file = Files.createTempFile("weir-apps-", "");
            try {
                Files.writeString(file, rows);
                return adapter.execute(sql.replace("{file}", file.toString()), List.of());
            } finally {
                Files.delete(file);
            }
        }

        /** A cancel request that comes before the statement does is lost on any server, so it is said again. */
        Object cancel(String sql) {
            var nag = CANCELS.scheduleWithFixedDelay(() -> {
                try {
                    adapter.cancel();
                } catch (Exception e) {
                    e.printStackTrace();
                }
            }, 100, 1000, TimeUnit.MILLISECONDS);
            try {
                return fails(sql, List.of());
            } finally {
                nag.cancel(false);
            }
        }
    }

    static List<Object> params(Object raw) {
        List<Object> out = new ArrayList<>();
        for (Object value : (List<?>) raw) out.add(value instanceof Double d ? (Object) d.intValue() : value);
        return out;
    }

    /** As JSON has it, and the same each time. */
    static Object plain(Object value) {
        if (value == null || value instanceof String || value instanceof Boolean || value instanceof Integer || value instanceof Long) return value;
        if (value instanceof List<?> list) {
            List<Object> out = new ArrayList<>();
            for (Object v : list) out.add(plain(v));
            return out;
        }
        if (value instanceof byte[] bytes) return new String(bytes, StandardCharsets.UTF_8);
        return value.getClass().getSimpleName() + " " + value;
    }

    static Adapter adapter(String framework, Map<String, String> who) {
        return switch (framework) {
            case "hikari" -> new Jdbc(who);
            case "hibernate" -> new Hibernate(who);
            default -> throw new IllegalArgumentException(framework);
        };
    }

    record Told(Map<String, Map<String, String>> clients, Map<String, List<List<Object>>> steps) {}

    public static void main(String[] args) throws Exception {
        Map<String, Client> clients = new LinkedHashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null;) {
            Told told = JSON.fromJson(line, Told.class);
            if (told.clients != null) {
                told.clients.forEach((number, who) -> clients.put(number,
                    new Client(adapter(System.getenv("T_FRAMEWORK").split("\\.")[0], who), Executors.newSingleThreadExecutor(Apps::daemon))));
            }
            if (told.steps != null) {
                told.steps.forEach((number, steps) -> {
                    Client client = clients.get(number);
                    client.thread.execute(() -> {
                        List<Object> seen;
                        try {
                            seen = client.all(steps);
                        } catch (Throwable e) {
                            seen = List.of("" + e);
                        }
                        String said = JSON.toJson(Map.of("client", number, "seen", seen));
                        synchronized (OUT) {
                            OUT.println(said);
                        }
                    });
                });
            }
        }
    }
}
