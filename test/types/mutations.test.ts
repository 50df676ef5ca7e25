/**
 * Omissions that the checks must refuse: each is planted in a copy of the sources, and tsc or, for switches that return
 * nothing, oxlint must report it in the file named. All are planted in one copy, so that each checker runs once.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

interface Mutation {
  readonly name: string
  /** Under src; as is the file in which the judge reports it, the same unless given. */
  readonly file: string
  readonly reportedIn?: string
  /** Occurs once in the file. */
  readonly replace: string
  readonly by: string
  readonly judge: 'tsc' | 'oxlint'
  /** A part of the line that reports it. */
  readonly report: string
}

/** A key of QueueFilter dropped in an engine: the condition would be ignored there, which matches all mail. */
const keyDropped = (layer: string, file: string, replace: string): Mutation => ({
  name: `a condition dropped in ${layer}`,
  file,
  replace,
  by: '',
  judge: 'tsc',
  report: "Property 'attemptsOver' is missing in type '{ ",
})

/** A kind of condition dropped where conditions are made of the table: no condition of the kind could be given there. */
const kindDropped = (layer: string, file: string, replace: string): Mutation => ({
  ...keyDropped(layer, file, replace),
  name: `a kind of condition dropped in ${layer}`,
  report: "Property 'count' is missing in type '{ ",
})

/** An instant of one clock given where the other one is wanted. */
const clockMixed = (name: string, file: string, replace: string, by: string, report: string): Mutation => ({
  name,
  file,
  replace,
  by,
  judge: 'tsc',
  report,
})

const QUEUE_FOR_WALL = "'QueueTime' is not assignable to "
const WALL_FOR_QUEUE = "'WallTime' is not assignable to "

const MUTATIONS: readonly Mutation[] = [
  clockMixed(
    'a time of the queue in a listing',
    'cli/postfix/showq.ts',
    'ctime(clock.wall.of(message.arrivedAt), clock)',
    'ctime(message.arrivedAt, clock)',
    QUEUE_FOR_WALL,
  ),
  clockMixed(
    'a time of the queue in a date of mail',
    'mail/mail-date.ts',
    'formatMailDate(wall, clock.zone(wall))',
    'formatMailDate(at, clock.zone(wall))',
    QUEUE_FOR_WALL,
  ),
  clockMixed(
    'a time of the queue in an event',
    'queue/scheduler/destination-control.ts',
    'until: wall.of(access.until)',
    'until: access.until',
    'is not assignable to parameter of type',
  ),
  clockMixed(
    'a time of the wall clock in a filter',
    'queries/departed-mail.ts',
    'filterOf(query, { now: clock.now(), wall: clock.wall })',
    'filterOf(query, { now: clock.wall.now(), wall: clock.wall })',
    WALL_FOR_QUEUE,
  ),
  clockMixed(
    'a clock of the machine for the clock of a queue',
    'cli/queue-client/direct-client.ts',
    'return clientOfQueue({ config, store, reader, clock, move, close })',
    'return clientOfQueue({ config, store, reader, clock: machine, move, close })',
    "missing in type 'MachineClock'",
  ),
  keyDropped(
    'the stores in SQL',
    'store/sql/message-selection.ts',
    "  attemptsOver: { on: 'recipient', sql: (limit, _, add) => `r.attempts > ${add(limit)}` },\n",
  ),
  keyDropped(
    'the memory store',
    'store/memory/memory-reader.ts',
    '  attemptsOver: (limit, { recipient }) => recipient.attempts > limit,\n',
  ),
  keyDropped('the maildrop', 'queue/intake/maildrop-listing.ts', '  attemptsOver: () => false,\n'),
  kindDropped('the options of commands', 'cli/queue-client/filters.ts', '  count: countArgument,\n'),
  kindDropped('queries of the API', 'queries/message-query.ts', '  count: wholeNumber(0, 1_000_000_000),\n'),
  kindDropped('the token of a plan', 'presentation/selection-shape.ts', '  count: z.int(),\n'),
  kindDropped('the words of the audit log', 'queue/operation-words.ts', '  count: String,\n'),
  kindDropped('the filter of what was given', 'store/message-conditions.ts', '  count: (count) => count,\n'),
  {
    name: 'a member of the events of recipients without a value',
    file: 'events/event-members.ts',
    replace: "same('forced', 'attempts')",
    by: "same('attempts')",
    judge: 'tsc',
    report: "'forced' is missing",
  },
  {
    name: 'a member of a resource without a value',
    file: 'resources/destination-json.ts',
    replace: '({ window: live?.window ?? null, message_rate',
    by: '({ message_rate',
    judge: 'tsc',
    report: "Property 'window' is missing",
  },
  {
    name: 'a value that the shape of its resource does not have',
    file: 'resources/departed-message-json.ts',
    replace: '    message_id: textOrNull,\n',
    by: '',
    judge: 'tsc',
    report: "'message_id' does not exist in type",
  },
  {
    name: 'a key of an operation dropped in the request of a command',
    file: 'cli/queue-client/api-client.ts',
    replace: 'dry_run: dryRun,',
    by: '',
    judge: 'tsc',
    report: "Property 'dry_run' is missing",
  },
  {
    name: 'a key of an operation dropped in a command',
    file: 'cli/commands/queue/queue-change.ts',
    replace: '    dryRun: options.dryRun === true,\n',
    by: '',
    judge: 'tsc',
    report: "Property 'dryRun' is missing",
  },
  {
    name: 'a condition that no filter has',
    file: 'cli/postfix/postsuper.ts',
    replace: 'given: {}, limit',
    by: "given: { domain: 'far.example' }, limit",
    judge: 'tsc',
    report: "'domain' does not exist in type 'GivenConditions'",
  },
  {
    name: 'the log lines of an event kind dropped',
    file: 'telemetry/kinds/node-kinds.ts',
    replace: "    lines: ({ shards }) => line('master', `shards taken: ${shards}`),\n",
    by: '',
    judge: 'tsc',
    report: "Property 'lines' is missing",
  },
  {
    name: 'the JSON record of an event kind dropped',
    file: 'telemetry/kinds/node-kinds.ts',
    replace: "    record: same('resolution'),\n",
    by: '',
    judge: 'tsc',
    report: "Property 'record' is missing",
  },
  {
    name: 'a member of a record that its events lack',
    file: 'telemetry/kinds/node-kinds.ts',
    replace: "same('node', 'name', 'shards', 'leases', 'corrupt')",
    by: "same('node', 'name', 'shards', 'lease', 'corrupt')",
    judge: 'tsc',
    report: 'readonly lease: <',
  },
  {
    name: 'a type of events without a kind',
    file: 'events/published-kinds.ts',
    reportedIn: 'events/event-types.ts',
    replace: "  readonly 'store.trouble': { readonly text: string }\n",
    by: "  readonly 'store.trouble': { readonly text: string }\n  readonly 'store.closed': { readonly text: string }\n",
    judge: 'tsc',
    report: 'Property \'"store.closed"\' is missing',
  },
  {
    name: 'a member of published data dropped from the record',
    file: 'events/published-kinds.ts',
    replace: ', notice_id: ({ queued }) => queueIdOf(queued.message) }',
    by: ' }',
    judge: 'tsc',
    report: "'notice_id' is missing",
  },
  {
    name: 'a condition of a fault that is read and ignored',
    file: 'testkit/remote/rule-reader.ts',
    replace: '  quota: keys.quota,\n',
    by: '',
    judge: 'tsc',
    report: "Property 'quota' is missing",
  },
  {
    name: 'a condition of a fault that nothing is compared with',
    file: 'testkit/remote/rule-facts.ts',
    replace: '  client: (pattern, { client }) => matchesPattern(pattern, client),\n',
    by: '',
    judge: 'tsc',
    report: "Property 'client' is missing",
  },
  {
    name: 'a formula of the previous wait that does not say so',
    file: 'backoff/cloud.ts',
    replace: '  usesPreviousWait: true,\n',
    by: '',
    judge: 'tsc',
    report: "'previousWait' does not exist",
  },
  {
    name: 'a failure of a session dropped in a switch',
    file: 'delivery/classify.ts',
    replace: "    case 'tls-level':\n    case 'auth-unavailable':\n      return true\n",
    by: "    case 'auth-unavailable':\n      return true\n",
    judge: 'tsc',
    report: 'lacks ending return statement',
  },
  {
    name: 'an event of the database dropped in a switch that returns nothing',
    file: 'daemon/shared-queue.ts',
    replace: "    case 'committed':\n      return transacted(event.took)\n",
    by: '',
    judge: 'oxlint',
    report: '"committed"',
  },
  {
    name: 'a Net method dropped in the wrapper of a relay that can be killed',
    file: 'testkit/virtual/incarnation.ts',
    replace: '      lookupNames: (address) => this.#whileAlive(() => net.lookupNames(address)),\n',
    by: '',
    judge: 'tsc',
    report: "Property 'lookupNames' is missing",
  },
  {
    name: 'a change of the body of mail that is sent',
    file: 'delivery/smtp/outgoing-mail.ts',
    replace: 'new CheckedContent(headerChecks.rules,',
    by: "new CheckedContent({ ...headerChecks.rules, changes: 'body' },",
    judge: 'tsc',
    report: `Type '"body"' is not assignable to type '"header"'`,
  },
  {
    name: 'a store method dropped in the SQLite engine',
    file: 'store/sqlite/writing/housekeeping.ts',
    replace: '  ping(): void {\n',
    by: '  pong(): void {\n',
    reportedIn: 'store/sqlite/core/store-core.ts',
    judge: 'tsc',
    report: "Property 'ping' is missing",
  },
  {
    name: 'a store method dropped in the memory engine',
    file: 'store/memory/memory-upkeep.ts',
    replace: '  ping: async () => undefined,\n',
    by: '',
    judge: 'tsc',
    report: "Property 'ping' is missing",
  },
  {
    name: 'a store method dropped in the table of methods',
    file: 'store/queue-store.ts',
    reportedIn: 'store/methods.ts',
    replace: "  saveDestination: { room: 'neither', sending: ([{ name }]) => [`n${name}`], changes: nothing },\n",
    by: '',
    judge: 'tsc',
    report: "Property 'saveDestination' is missing",
  },
]

const ROOT = resolve(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'deferd-types-'))
const reports: Record<Mutation['judge'], readonly string[]> = { tsc: [], oxlint: [] }

function plant({ file, replace, by }: Mutation): void {
  const path = join(folder, 'src', file)
  const source = readFileSync(path, 'utf8')
  expect(source.split(replace), `${file} has the text once`).toHaveLength(2)
  writeFileSync(
    path,
    source.replace(replace, () => by),
  )
}

/** The lines that a judge prints, each with the file first. */
const judged = (command: string, args: readonly string[]): Promise<readonly string[]> =>
  new Promise((done) => {
    execFile(join(ROOT, 'node_modules/.bin', command), args, { cwd: folder }, (_, stdout) => done(stdout.split('\n')))
  })

beforeAll(async () => {
  for (const part of ['src', '.oxlintrc.json', 'package.json', 'tsconfig.json'])
    cpSync(join(ROOT, part), join(folder, part), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  for (const mutation of MUTATIONS) plant(mutation)
  const linted = MUTATIONS.filter(({ judge }) => judge === 'oxlint').map(({ file }) => join('src', file))
  const [tsc, oxlint] = await Promise.all([judged('tsc', ['--pretty', 'false']), judged('oxlint', ['--format', 'unix', ...linted])])
  Object.assign(reports, { tsc, oxlint })
})

afterAll(() => rmSync(folder, { recursive: true }))

test.each(MUTATIONS)('$name is reported by $judge', ({ file, reportedIn = file, judge, report }) => {
  expect(reports[judge].filter((line) => line.startsWith(`src/${reportedIn}`) && line.includes(report))).not.toEqual([])
})

test('nothing else is reported', () => {
  const mutated = new Set(MUTATIONS.flatMap(({ file, reportedIn = file }) => [`src/${file}`, `src/${reportedIn}`]))
  const others = [...reports.tsc, ...reports.oxlint].filter((line) => line.startsWith('src/') && !mutated.has(line.split(/[(:]/)[0] ?? ''))
  expect(others).toEqual([])
})
