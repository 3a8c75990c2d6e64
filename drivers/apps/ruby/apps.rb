# An application-shaped program in Ruby: plays the steps that it is told in many clients at once. What apps.py does in Python. ActiveRecord as
# Rails runs it, each client a thread with a database configuration, and so a pool, of its own. T_FRAMEWORK is the adapter of ActiveRecord.
require 'active_record'
require 'json'
require 'tempfile'

CANCEL_AGAIN_S = 1
KIND = ENV.fetch('T_KIND')
MODELS = {}

def configuration(who)
  common = { host: ENV['T_HOST'], port: ENV['T_PORT'].to_i, username: ENV['T_USER'], password: ENV['T_PASSWORD'], pool: 1, checkout_timeout: 120 }
  if KIND == 'postgres'
    { **common, adapter: 'postgresql', database: ENV['T_DB'], schema_search_path: who['schema'], sslmode: 'disable',
      variables: { timezone: who['zone'], application_name: who['application'] } }
  else
    { **common, adapter: 'mysql2', database: who['schema'], encoding: 'utf8mb4', variables: { time_zone: who['offset'], sql_mode: who['sql_mode'] }, local_infile: true, prepared_statements: true }
  end
end

# ActiveRecord has a pool for each class that connects.
def model(number)
  MODELS[number] ||= Class.new(ActiveRecord::Base) do
    self.abstract_class = true
    define_singleton_method(:name) { "Client#{number}" }
  end
end

def plain(value)
  case value
  when nil, true, false, Integer, String then value
  when Array then value.map { |v| plain(v) }
  when Hash then value.transform_values { |v| plain(v) }
  else "#{value.class} #{value}"
  end
end

class Client
  def initialize(number, who)
    @base = model(number)
    @who = who
    @steps = Queue.new
    @thread = Thread.new do
      while (number_and_steps = @steps.pop)
        say(number_and_steps[0], all(number_and_steps[1]))
      end
    end
  end

  def play(number, steps)
    @steps << [number, steps]
  end

  def say(number, seen)
    line = "#{JSON.generate({ client: number, seen: seen })}\n"
    OUT.synchronize { $stdout.write(line); $stdout.flush }
  end

  OUT = Mutex.new
  KILLER = []

  def all(steps)
    steps.map do |what, *words|
      send("do_#{what}", *words)
    rescue StandardError => e
      { error: describe(e) }
    end
  end

  def describe(error)
    under = error.cause || error
    state = if under.respond_to?(:result) && under.result then under.result.error_field(PG::Result::PG_DIAG_SQLSTATE)
            elsif under.respond_to?(:error_number) then [under.error_number, under.sql_state]
            end
    [error.class.name, under.class.name, state, under.message.lines.first.to_s.strip]
  end

  def db
    @base.connection
  end

  def do_open
    @base.establish_connection(configuration(@who))
    db.select_value('SELECT 1')
    @raw = db.raw_connection
    ready_to_kill if KIND != 'postgres'
    nil
  end

  # Statements are ended from a connection that is there already: behind Weir a new one could wait for a server with its login.
  def ready_to_kill
    @number = @raw.thread_id
    OUT.synchronize do
      KILLER[0] ||= Mysql2::Client.new(host: ENV['T_HOST'], port: ENV['T_PORT'].to_i, username: ENV['T_USER'], password: ENV['T_PASSWORD'])
    end
  end

  def do_close
    @base.remove_connection
    nil
  end

  def do_reconnect
    do_close
    do_open
  end

  # The values as ActiveRecord binds them.
  def bound(params)
    params.map { |v| ActiveRecord::Relation::QueryAttribute.new('p', v, ActiveModel::Type::Value.new) }
  end

  def do_execute(sql, params = [])
    params.empty? ? (db.execute(sql); nil) : db.exec_update(sql, 'SQL', bound(params))
  end

  def do_query(sql, params = [])
    plain(params.empty? ? db.select_rows(sql) : db.exec_query(sql, 'SQL', bound(params)).rows)
  end

  def do_prepared(sql, runs)
    runs.map { |params| plain(db.exec_query(sql, 'SQL', bound(params), prepare: true).rows) }
  end

  def do_fails(sql, params = [])
    params.empty? ? db.execute(sql) : db.exec_query(sql, 'SQL', bound(params))
    'no error'
  rescue StandardError => e
    describe(e)
  end

  def do_transaction(steps, commit)
    seen = nil
    @base.transaction do
      seen = all(steps)
      raise ActiveRecord::Rollback unless commit
    end
    seen
  end

  def do_savepoint(steps, release)
    seen = nil
    @base.transaction(requires_new: true) do
      seen = all(steps)
      raise ActiveRecord::Rollback unless release
    end
    seen
  end

  # A worker of a job queue: takes and does jobs until there are none.
  def do_queue(take, done)
    loop do
      found = nil
      @base.transaction do
        found = db.select_rows(take)
        found.each { |row| db.exec_update(done, 'SQL', bound([row[0]])) }
      end
      return if found.empty?
    end
  end

  def do_migrate(statements)
    @base.transaction { statements.each { |statement| db.execute(statement) } }
    nil
  end

  def do_orm
    connection = db
    connection.create_table('authors') { |t| t.string :name, limit: 100, null: false, index: { unique: true } }
    connection.create_table('books') { |t| t.references :author; t.string :title; t.decimal :price, precision: 10, scale: 2, default: 1 }
    author, book = classes
    seen = [connection.tables.sort]
    name = @who['application']
    @base.transaction do
      3.times { |n| a = author.create!(name: "#{name} #{n}"); 3.times { |k| book.create!(author_id: a.id, title: "#{n}.#{k}", price: k) } }
    end
    begin
      author.create!(name: "#{name} 0")
    rescue ActiveRecord::RecordNotUnique => e
      seen << describe(e)
    end
    seen << author.order(:name).pluck(:name) << book.group(:author_id).count.values
    seen << book.where('price >= 1').update_all('price = price * 2') << book.sum(:price)
    @base.transaction { seen << author.lock.find_by(name: "#{name} 1").name }
    seen << book.order(:title).in_batches(of: 4).map(&:count) << author.find_by(name: "#{name} 2").destroy.name << author.count
    connection.drop_table('books')
    connection.drop_table('authors')
    plain(seen)
  end

  def classes
    base = @base
    %w[authors books].map { |table| Class.new(base) { self.table_name = table; define_singleton_method(:name) { table.classify } } }
  end

  def do_stream(sql)
    total = 0
    rows = db.select_rows(sql)
    rows.each { |row| total = (total * 31 + row.last.to_s.sum) % 1_000_003 }
    [rows.size, total]
  end

  def do_copy_in(sql, text)
    db.raw_connection.copy_data(sql) { db.raw_connection.put_copy_data(text) }
    nil
  end

  def do_copy_out(sql)
    out = +''
    raw = db.raw_connection
    raw.copy_data(sql) { while (row = raw.get_copy_data) do out << row end }
    out
  end

  def do_listen(channel, payload)
    db.execute("LISTEN #{channel}")
    db.execute("SELECT pg_notify('#{channel}', '#{payload}')")
    heard = nil
    db.raw_connection.wait_for_notify(30) { |_channel, _pid, said| heard = said }
    db.execute("UNLISTEN #{channel}")
    heard
  end

  def do_load(sql, text)
    Tempfile.create('weir-apps') do |file|
      file.write(text)
      file.flush
      do_execute(sql.sub('{file}', file.path))
    end
  end

  # A cancel request that comes before the statement does is lost on any server, so it is said again.
  def do_cancel(sql)
    raw = db.raw_connection
    nag = Thread.new do
      sleep 0.1
      loop do
        cancel(raw)
        sleep CANCEL_AGAIN_S
      end
    end
    do_fails(sql)
  ensure
    # Not in the middle of its question: the connection that all kill by would be in use for ever.
    OUT.synchronize { nag&.kill }
  end

  def cancel(raw)
    return raw.cancel if KIND == 'postgres'

    OUT.synchronize { KILLER[0].query("KILL QUERY #{@number}") }
  end
end

ActiveRecord::Base.logger = nil
ActiveRecord.legacy_connection_handling = false if ActiveRecord.respond_to?(:legacy_connection_handling=)
clients = {}
$stdin.each_line do |line|
  told = JSON.parse(line)
  (told['clients'] || {}).each { |number, who| clients[number] = Client.new(number, who) }
  (told['steps'] || {}).each { |number, steps| clients[number].play(number, steps) }
end
