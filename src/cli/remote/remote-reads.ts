/** Commands that read a queue, from the answers of the API of a remote daemon. */
import { createInterface } from 'node:readline'
import { NDJSON } from '../../http/command-protocol.ts'
import { grouped, instantOf, jsonLine, localTime, maskControls, plural } from '../../presentation/text.ts'
import type { DepartedMessageJson } from '../../resources/departed-message-json.ts'
import type { SummedCauseJson } from '../../resources/cause-json.ts'
import type { AuditEntryJson } from '../../resources/operation-json.ts'
import { CONDITION_KEYS, MESSAGE_CONDITIONS } from '../../store/message-conditions.ts'
import { clockOf } from '../../system/queue-clock.ts'
import { formatDuration } from '../../system/duration.ts'
import { SECOND, sleep } from '../../system/clock.ts'
import { auditLine } from '../commands/audit/audit.ts'
import { writeContent } from '../commands/queue-cat.ts'
import { segment, type ApiConnection } from '../queue-client/api-connection.ts'
import { givenConditions } from '../queue-client/filters.ts'
import { causeSums } from '../render/cause-list.ts'
import { historyHeadings, historyLine, historyValues } from '../render/history-line.ts'
import { columnsFor, tableHeading, tableRow } from '../render/table.ts'
import { displayOf } from '../shell/display.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'

/** A call of a command. */
export interface RemoteCall {
  readonly shell: Shell
  readonly api: ApiConnection
  readonly words: readonly string[]
  readonly options: Readonly<Record<string, unknown>>
}

type Row = Readonly<Record<string, unknown>>

const numberIn = (value: unknown, byDefault: number): number => (typeof value === 'number' ? value : byDefault)

const queryOf = (values: Readonly<Record<string, unknown>>): string => {
  const given = Object.entries(values).flatMap(([name, value]) =>
    typeof value === 'string' || typeof value === 'number' ? [[name, String(value)] as [string, string]] : [],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
}

/** Ages as the API reads them. */
const ageText = (value: unknown): unknown => (typeof value === 'number' ? formatDuration(value) : value)

function conditionsOf(options: object): Readonly<Record<string, unknown>> {
  const given: Readonly<Record<string, unknown>> = givenConditions(options)
  return Object.fromEntries(
    CONDITION_KEYS.map((key) => MESSAGE_CONDITIONS[key]).map(({ name, kind }) => [
      name,
      kind === 'age' ? ageText(given[name]) : given[name],
    ]),
  )
}

/** The values of an answer by lines, at most `most`. */
async function* lines(api: ApiConnection, path: string, most = Infinity): AsyncGenerator<Row> {
  let left = most
  if (left <= 0) return
  const response = await api.answer({ method: 'GET', path, limit: 60 * SECOND }, NDJSON)
  try {
    for await (const line of createInterface({ input: response })) {
      yield JSON.parse(line) as Row
      if (--left <= 0) return
    }
  } finally {
    response.destroy()
  }
}

const cellOf = (name: string, value: unknown, shell: Shell): string => {
  if (value === null || value === undefined) return '-'
  if (typeof value === 'number') return name.endsWith('_time') ? localTime(instantOf(value), shell.clock) : grouped(value)
  if (Array.isArray(value)) return value.map((one) => cellOf('', one, shell)).join(', ')
  if (typeof value === 'object') return 'address' in value ? String(value.address) : JSON.stringify(value)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

async function table({ shell }: RemoteCall, members: readonly string[], rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return shell.stdout.write('Nothing is listed.\n')
  const display = displayOf(shell)
  const cells = rows.map((row) => members.map((name) => cellOf(name, row[name], shell)))
  const headings = members.map((name) =>
    name
      .replace(/_time$/, '')
      .replaceAll('_', ' ')
      .toUpperCase(),
  )
  const columns = columnsFor(headings, cells, display)
  await shell.stdout.write(
    [tableHeading(columns, display), ...cells.map((row) => tableRow(row, columns, display))].map((line) => `${line}\n`).join(''),
  )
}

/** The members of a value, one per line; those of nested values are indented. */
function factLines(value: Row, shell: Shell, indent = ''): readonly string[] {
  return Object.entries(value).flatMap(([name, member]) => {
    const isNested = typeof member === 'object' && member !== null && !Array.isArray(member)
    if (isNested) return [`${indent}${name}`, ...factLines(member as Row, shell, `${indent}  `)]
    const nested = Array.isArray(member) ? member.filter((one) => typeof one === 'object' && one !== null) : []
    if (nested.length > 0) return [`${indent}${name}`, ...nested.flatMap((one) => ['', ...factLines(one as Row, shell, `${indent}  `)])]
    return [`${indent}${name.padEnd(20)}${cellOf(name, member, shell)}`]
  })
}

const isJson = ({ options }: RemoteCall): boolean => options['json'] === true

/** Rows as JSON lines, or as a table of these members. */
async function listed(call: RemoteCall, members: readonly string[], rows: AsyncIterable<Row> | readonly Row[]): Promise<void> {
  const kept: Row[] = []
  for await (const row of rows) {
    if (isJson(call)) await call.shell.stdout.write(jsonLine(row))
    else if (call.options['tsv'] === true)
      await call.shell.stdout.write(`${members.map((name) => maskControls(cellOf(name, row[name], call.shell))).join('\t')}\n`)
    else kept.push(row)
  }
  if (!isJson(call) && call.options['tsv'] !== true) await table(call, members, kept)
}

const get = async (api: ApiConnection, path: string): Promise<Row> => (await api.json({ method: 'GET', path, limit: 30 * SECOND })) as Row

/** A value as a JSON line, or as its facts. */
async function shown(call: RemoteCall, path: string): Promise<void> {
  const value = await get(call.api, path)
  const text = isJson(call)
    ? jsonLine(value)
    : factLines(value, call.shell)
        .map((line) => `${maskControls(line)}\n`)
        .join('')
  await call.shell.stdout.write(text)
}

/** A list that one answer has. */
const wholeList = (path: string, member: string, members: readonly string[]) => async (call: RemoteCall) =>
  listed(call, members, (await get(call.api, path))[member] as readonly Row[])

async function queueList(call: RemoteCall): Promise<void> {
  const { api, options, shell } = call
  const path = `/messages${queryOf(conditionsOf(options))}`
  if (options['sort'] !== undefined)
    throw new CommandError(EX.usage, '--sort is for the queue of this machine: with --host, messages are oldest first')
  const most = numberIn(options['limit'], Infinity)
  if (options['count'] !== true)
    return listed(call, ['queue_id', 'queue_name', 'attempts', 'next_attempt_time', 'sender', 'recipients'], lines(api, path, most))
  let messages = 0
  for await (const _ of lines(api, path, most)) messages++
  await shell.stdout.write(isJson(call) ? jsonLine({ messages }) : `${messages}\n`)
}

async function queueCat({ api, words: [id = ''], options, shell }: RemoteCall): Promise<void> {
  const [e, h, b] = ['e', 'h', 'b'].map((name) => options[name] === true)
  const path = `/messages/${segment(id)}`
  if (e === true) {
    const { sender, recipients, queue_name: queue, message_size: size } = await get(api, path)
    const facts = { queue_id: id, queue_name: queue, message_size: size, sender, recipients }
    await shell.stdout.write(
      factLines(facts, shell)
        .map((line) => `${maskControls(line)}\n`)
        .join(''),
    )
    if (h !== true && b !== true) return
  }
  const part = h === b ? 'all' : h === true ? 'header' : 'body'
  await writeContent(shell.stdout, await api.answer({ method: 'GET', path: `${path}/content?part=${part}`, limit: 60 * SECOND }, '*/*'))
}

async function causes(call: RemoteCall): Promise<void> {
  const { api, options, shell } = call
  const { destination, details } = options
  if (details !== true && typeof destination !== 'string') {
    const sums = (await get(api, '/causes'))['causes'] as readonly SummedCauseJson[]
    const facts = { display: displayOf(shell), limit: numberIn(options['limit'], Infinity) }
    return shell.stdout.write(isJson(call) ? sums.map(jsonLine).join('') : sums.length === 0 ? 'No mail waits.\n' : causeSums(sums, facts))
  }
  const path = typeof destination === 'string' ? `/destinations/${segment(destination)}/causes` : '/causes?by=destination'
  const { causes: found } = await get(api, path)
  await listed(call, ['destination', 'on_hold', 'cause', 'recipients', 'last_time', 'options'], found as readonly Row[])
}

async function history({ api, options, shell }: RemoteCall): Promise<void> {
  const { sender, recipient, outcome, since, limit, json, tsv } = options
  const [clock, display] = [clockOf(null, shell.clock), displayOf(shell)]
  const path = `/history${queryOf({ sender, recipient, outcome, since: ageText(since) })}`
  const isTable = json !== true && tsv !== true
  let count = 0
  for await (const row of lines(api, path, numberIn(limit, Infinity))) {
    const one = row as DepartedMessageJson
    if (isTable && count === 0) await shell.stdout.write(`${historyHeadings(display)}\n`)
    count++
    if (json === true) await shell.stdout.write(jsonLine(row))
    else
      for (const each of one.recipients)
        await shell.stdout.write(`${isTable ? historyLine(one, each, clock, display) : historyValues(one, each)}\n`)
  }
  if (isTable) await shell.stdout.write(count === 0 ? 'No message in the history matches.\n' : `${plural(count, 'message')}\n`)
}

/** The records of the audit log, the last one first. */
async function* auditRecords(api: ApiConnection, most: number): AsyncGenerator<AuditEntryJson> {
  let before: unknown
  for (let left = most; left > 0 && before !== null;) {
    const page = await get(api, `/audit${queryOf({ limit: Math.min(500, left), before })}`)
    const records = page['records'] as readonly AuditEntryJson[]
    yield* records
    left -= records.length
    before = page['next']
  }
}

async function audit({ api, options, shell }: RemoteCall): Promise<void> {
  const { limit, before } = options
  const first = numberIn(before, Infinity)
  const clock = clockOf(null, shell.clock)
  let left = numberIn(limit, Infinity)
  const all: string[] = []
  for await (const record of auditRecords(api, before === undefined ? left : Infinity)) {
    if (record.id >= first) continue
    if (left-- <= 0) break
    all.push(auditLine(record, options, clock))
  }
  // Without --limit and --before, the first action comes first.
  await shell.stdout.write((limit === undefined && before === undefined ? all.toReversed() : all).join(''))
}

async function top(call: RemoteCall): Promise<void> {
  const interval = numberIn(call.options['interval'], SECOND)
  for (let left = numberIn(call.options['count'], Infinity); left > 0; left--) {
    await shown(call, '/now')
    if (left > 1) await sleep(call.shell.clock, interval)
  }
}

async function tlsShow(call: RemoteCall): Promise<void> {
  if (call.options['fetch'] === true) throw new CommandError(EX.usage, '--fetch asks the domain from this machine: leave --host out')
  const domain = call.words[0] ?? ''
  const found = ((await get(call.api, '/sts-policies'))['policies'] as readonly Row[]).find((one) => one['domain'] === domain.toLowerCase())
  if (found === undefined) throw new CommandError(EX.data, `no MTA-STS policy of ${maskControls(domain)} is kept`)
  await call.shell.stdout.write(
    isJson(call)
      ? jsonLine(found)
      : factLines(found, call.shell)
          .map((line) => `${maskControls(line)}\n`)
          .join(''),
  )
}

const DESTINATION = ['destination', 'waiting', 'in_flight', 'state', 'last_reply']

/** Commands that read, by their words. */
export const REMOTE_READS: Readonly<Record<string, (call: RemoteCall) => Promise<void>>> = {
  status: (call) => shown(call, '/now'),
  top,
  'queue list': queueList,
  'queue show': (call) => shown(call, `/messages/${segment(call.words[0] ?? '')}`),
  'queue cat': queueCat,
  'queue causes': causes,
  'history list': history,
  'destination list': (call) => listed(call, DESTINATION, lines(call.api, '/destinations')),
  'destination show': (call) => shown(call, `/destinations/${segment(call.words[0] ?? '')}`),
  audit,
  'token list': wholeList('/tokens', 'tokens', ['name', 'role', 'destinations', 'added_by', 'last_used_time', 'expire_time']),
  'webhook list': wholeList('/subscriptions', 'subscriptions', ['name', 'to', 'state', 'behind', 'parked']),
  'access list': wholeList('/access', 'entries', ['subject', 'key', 'action', 'expire_time', 'added_by']),
  'tls list': wholeList('/sts-policies', 'policies', ['domain', 'mode', 'id', 'expire_time', 'mx']),
  'tls show': tlsShow,
}
