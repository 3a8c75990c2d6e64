<?php
// An application-shaped program in PHP: plays the steps that it is told in many clients at once. What apps.py does in Python. A process for each
// client, as under a web server. T_FRAMEWORK names the class of its adapter: Laravel's and WordPress's connections are these calls and these statements.
declare(strict_types=1);

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);

function env(string $name): string
{
    return getenv("T_$name");
}

abstract class Adapter
{
    public function __construct(protected array $who)
    {
    }

    abstract public function open(): void;
    abstract public function close(): void;
    abstract public function execute(string $sql, array $params): mixed;
    abstract public function query(string $sql, array $params): array;
    abstract public function transaction(callable $body, bool $commit): void;

    public function prepared(string $sql, array $params): array
    {
        return $this->query($sql, $params);
    }

    public function savepoint(callable $body, bool $release): void
    {
        $this->execute('SAVEPOINT trans2', []);
        $body();
        $this->execute($release ? 'RELEASE SAVEPOINT trans2' : 'ROLLBACK TO SAVEPOINT trans2', []);
    }

    public function stream(string $sql): iterable
    {
        return $this->query($sql, []);
    }

    public function describe(Throwable $e): array
    {
        $state = $e instanceof PDOException ? [$e->errorInfo[0] ?? null, $e->errorInfo[1] ?? null] : [$e instanceof mysqli_sql_exception ? $e->getSqlState() : null, $e->getCode()];
        return [get_class($e), ...$state, strtok($e->getMessage(), "\n")];
    }
}

/** Laravel over PDO: its options, its statements at connect. */
abstract class Laravel extends Adapter
{
    protected ?PDO $db = null;

    public function close(): void
    {
        $this->db = null;
    }

    protected function connect(string $dsn, array $options = []): void
    {
        $this->db = new PDO($dsn, env('USER'), env('PASSWORD'), $options + [
            PDO::ATTR_CASE => PDO::CASE_NATURAL, PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_ORACLE_NULLS => PDO::NULL_NATURAL,
            PDO::ATTR_STRINGIFY_FETCHES => false, PDO::ATTR_EMULATE_PREPARES => false,
        ]);
    }

    protected function run(string $sql, array $params): PDOStatement
    {
        $statement = $this->db->prepare($sql);
        foreach ($params as $n => $value) {
            $statement->bindValue($n + 1, $value, is_int($value) ? PDO::PARAM_INT : PDO::PARAM_STR);
        }
        $statement->execute();
        return $statement;
    }

    public function execute(string $sql, array $params): mixed
    {
        // Laravel's statement() and unprepared().
        return $params ? $this->run($sql, $params)->rowCount() : $this->db->exec($sql);
    }

    public function query(string $sql, array $params): array
    {
        $statement = $this->run($sql, $params);
        $rows = $statement->columnCount() ? $statement->fetchAll(PDO::FETCH_NUM) : [];
        $statement->closeCursor();
        return $rows;
    }

    public function transaction(callable $body, bool $commit): void
    {
        $this->db->beginTransaction();
        $body();
        if ($commit) {
            $this->db->commit();
        } else {
            $this->db->rollBack();
        }
    }
}

final class LaravelPostgres extends Laravel
{
    public function open(): void
    {
        $this->connect(sprintf("pgsql:host=%s;dbname='%s';port=%s;client_encoding='utf8';sslmode=disable;application_name='%s'", env('HOST'), env('DB'), env('PORT'), $this->who['application']));
        // PostgresConnector: the isolation level only when it is set; the time zone; the search path.
        $this->db->prepare("set time zone '{$this->who['zone']}'")->execute();
        $this->db->prepare("set search_path to \"{$this->who['schema']}\"")->execute();
    }

    public function copy_in(string $sql, string $text): mixed
    {
        return $this->db->pgsqlCopyFromArray('copied', explode("\n", rtrim($text, "\n")));
    }

    public function copy_out(string $sql): mixed
    {
        // The name of a table or, in brackets, a query.
        return implode('', $this->db->pgsqlCopyToArray(substr($sql, strlen('COPY '), -strlen(' TO STDOUT'))));
    }

    public function listen(string $channel, string $payload): mixed
    {
        $this->db->exec("LISTEN $channel");
        $this->run('SELECT pg_notify(?, ?)', [$channel, $payload]);
        $heard = $this->db->pgsqlGetNotify(PDO::FETCH_ASSOC, 30_000);
        $this->db->exec("UNLISTEN $channel");
        return $heard ? $heard['payload'] : null;
    }
}

final class LaravelMySql extends Laravel
{
    public function open(): void
    {
        $this->connect(sprintf('mysql:host=%s;port=%s;dbname=%s', env('HOST'), env('PORT'), $this->who['schema']), [PDO::MYSQL_ATTR_LOCAL_INFILE => true]);
        // MySqlConnector: use, names, time zone and modes in one SET.
        $this->db->exec("use `{$this->who['schema']}`;");
        $this->db->exec("SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_ci', SESSION time_zone='{$this->who['offset']}', SESSION sql_mode='{$this->who['sql_mode']}';");
    }

    public function load(string $sql): mixed
    {
        return $this->db->exec($sql);
    }

    public function execute(string $sql, array $params): mixed
    {
        return [parent::execute($sql, $params), $this->db->lastInsertId()];
    }
}

/** WordPress over mysqli: text only. */
final class WordPress extends Adapter
{
    private ?mysqli $db = null;

    public function open(): void
    {
        $this->db = mysqli_init();
        $this->db->real_connect(env('HOST'), env('USER'), env('PASSWORD'), null, (int) env('PORT'), null, 0);
        // wpdb: set_charset(), set_sql_mode(), select().
        $this->db->set_charset('utf8mb4');
        $this->db->query("SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'");
        $modes = explode(',', $this->db->query('SELECT @@SESSION.sql_mode')->fetch_row()[0]);
        $modes = array_diff($modes, ['NO_ZERO_DATE', 'ONLY_FULL_GROUP_BY', 'STRICT_TRANS_TABLES', 'STRICT_ALL_TABLES', 'TRADITIONAL', 'ANSI']);
        $this->db->query("SET SESSION sql_mode='" . implode(',', $modes) . "'");
        $this->db->select_db($this->who['schema']);
    }

    public function close(): void
    {
        $this->db->close();
    }

    private function text(string $sql, array $params): string
    {
        foreach ($params as $value) {
            $at = strpos($sql, '?');
            $sql = substr_replace($sql, is_int($value) ? (string) $value : "'" . $this->db->real_escape_string((string) $value) . "'", $at, 1);
        }
        return $sql;
    }

    public function execute(string $sql, array $params): mixed
    {
        $this->db->query($this->text($sql, $params));
        return [$this->db->affected_rows, $this->db->insert_id, $this->db->warning_count];
    }

    public function query(string $sql, array $params): array
    {
        $result = $this->db->query($this->text($sql, $params));
        return $result instanceof mysqli_result ? $result->fetch_all() : [];
    }

    public function transaction(callable $body, bool $commit): void
    {
        $this->db->query('START TRANSACTION');
        $body();
        $this->db->query($commit ? 'COMMIT' : 'ROLLBACK');
    }

    public function load(string $sql): mixed
    {
        return $this->execute($sql, []);
    }
}

final class Client
{
    public function __construct(private Adapter $adapter)
    {
    }

    public function all(array $steps): array
    {
        return array_map(function (array $step) {
            try {
                return $this->one(...$step);
            } catch (Throwable $e) {
                return ['error' => $this->adapter->describe($e)];
            }
        }, $steps);
    }

    private function one(string $what, mixed ...$w): mixed
    {
        switch ($what) {
            case 'open': $this->adapter->open(); return null;
            case 'close': $this->adapter->close(); return null;
            case 'reconnect': $this->adapter->close(); $this->adapter->open(); return null;
            case 'execute': return $this->adapter->execute($w[0], $w[1]);
            case 'query': return $this->adapter->query($w[0], $w[1]);
            case 'prepared': return array_map(fn ($params) => $this->adapter->prepared($w[0], $params), $w[1]);
            case 'fails':
                try {
                    $this->adapter->query($w[0], $w[1]);
                } catch (Throwable $e) {
                    return $this->adapter->describe($e);
                }
                return 'no error';
            case 'transaction':
            case 'savepoint':
                $seen = [];
                $this->adapter->$what(function () use (&$seen, $w) {
                    $seen = $this->all($w[0]);
                }, $w[1]);
                return $seen;
            case 'queue':
                do {
                    $found = [];
                    $this->adapter->transaction(function () use (&$found, $w) {
                        $found = $this->adapter->query($w[0], []);
                        foreach ($found as $row) {
                            $this->adapter->execute($w[1], [$row[0]]);
                        }
                    }, true);
                } while ($found);
                return null;
            case 'migrate':
                // DDL of MySQL ends transactions, which PDO sees.
                foreach ($w[0] as $statement) {
                    $this->adapter->execute($statement, []);
                }
                return null;
            case 'orm': return null;
            case 'stream':
                $rows = $total = 0;
                foreach ($this->adapter->stream($w[0]) as $row) {
                    $rows++;
                    $total = ($total * 31 + crc32((string) end($row))) % 1_000_003;
                }
                return [$rows, $total];
            case 'load':
                $file = tempnam(sys_get_temp_dir(), 'weir-apps-');
                file_put_contents($file, $w[1]);
                try {
                    return $this->adapter->load(str_replace('{file}', $file, $w[0]));
                } finally {
                    unlink($file);
                }
            default: return $this->adapter->$what(...$w);
        }
    }
}

function play(Adapter $adapter, mixed $in): never
{
    $client = new Client($adapter);
    while (($line = fgets($in)) !== false) {
        [$number, $steps] = json_decode($line, true);
        $said = json_encode(['client' => $number, 'seen' => $client->all($steps)], JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_UNICODE) . "\n";
        // Many processes write to one pipe, and what is longer than it takes at once would mix.
        $lock = fopen(__FILE__, 'r');
        flock($lock, LOCK_EX);
        while ($said !== '') {
            $said = substr($said, fwrite(STDOUT, $said));
        }
        flock($lock, LOCK_UN);
        fclose($lock);
    }
    exit(0);
}

$framework = getenv('T_FRAMEWORK');
$clients = [];
while (($line = fgets(STDIN)) !== false) {
    $told = json_decode($line, true);
    foreach ($told['clients'] ?? [] as $number => $who) {
        [$mine, $its] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        if (pcntl_fork() === 0) {
            array_map('fclose', $clients);
            fclose($mine);
            play(new $framework($who), $its);
        }
        fclose($its);
        $clients[$number] = $mine;
    }
    foreach ($told['steps'] ?? [] as $number => $steps) {
        fwrite($clients[$number], json_encode([(string) $number, $steps]) . "\n");
    }
}
array_map('fclose', $clients);
while (pcntl_wait($status) > 0);
