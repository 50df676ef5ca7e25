/** Reads the `[schedule.NAME]` tables. */
import { sharedPlace } from '../queue-place.ts'
import { isAbsolute } from 'node:path'
import { RunTimes } from '../../../calendar/run-times.ts'
import { parseAddress, parseDomain } from '../../../mail/address-path.ts'
import { CronExpression, cronMistakes } from '../../../system/calendar/cron-expression.ts'
import type { Duration, WallTime } from '../../../system/clock.ts'
import { isTimeZone } from '../../../system/calendar/time-zone.ts'
import type { Problem } from '../problem.ts'
import {
  ACTION_MEMBERS,
  ACTION_NAMES,
  isScheduleMember,
  SCHEDULE_MEMBERS,
  type ActionName,
  type ScheduledAction,
  type ScheduleMember,
  type ScheduleTable,
} from './schedule-table.ts'
import type { RawSettings, RawValue } from '../sources.ts'
import * as is from '../values.ts'

const NAME = /^[a-z0-9](?:[a-z0-9_.-]{0,62}[a-z0-9])?$/

/** From this instant on, an expression must match once; it is the beginning of 2026. */
const TRIED_FROM: WallTime = 1_767_225_600_000

const someTexts = (expected: string, isOne: (text: string) => boolean): is.Kind<readonly string[]> =>
  is.kind(expected, (given) => {
    const reading = is.list(given)
    return 'value' in reading && reading.value.length > 0 && reading.value.every(isOne) ? reading.value : undefined
  })

const isAddress = (text: string): boolean => text.includes('@') && parseAddress(text, '') !== undefined

const KINDS = {
  to: is.kind('the absolute path of a file, in which only {date} and {time} are in braces', (given) => {
    const reading = is.text(given)
    if (!('value' in reading) || !isAbsolute(reading.value) || reading.value.endsWith('/')) return undefined
    return /[{}]/.test(reading.value.replaceAll(/\{(?:date|time)\}/g, '')) ? undefined : reading.value
  }),
  keep: is.count(1),
  notify: someTexts('one or more addresses such as "ops@example.com"', isAddress),
  destinations: someTexts('one or more names of destinations or patterns with *', (text) => text !== ''),
  for: is.kind('a time longer than 0 such as "2h"', (given) => {
    const reading = is.duration(given)
    return 'value' in reading && reading.value > 0 ? reading.value : undefined
  }),
  domains: someTexts('one or more domains such as "example.com"', (text) => parseDomain(text) !== undefined),
} as const

type OwnMember = keyof typeof KINDS
type ValueOf<M extends OwnMember> = (typeof KINDS)[M] extends is.Kind<infer T> ? T : never

interface OwnValues {
  readonly to: string | undefined
  readonly keep: number | undefined
  readonly notify: readonly string[] | undefined
  readonly destinations: readonly string[] | undefined
  readonly duration: Duration | undefined
  readonly domains: readonly string[] | undefined
}

/** Reads one table and collects its problems. */
class TableReader {
  readonly #name: string
  readonly #raw: ReadonlyMap<string, RawValue>
  readonly #where: string
  readonly #problems: Problem[]

  constructor(name: string, { raw, where }: { readonly raw: ReadonlyMap<string, RawValue>; readonly where: string }, problems: Problem[]) {
    this.#name = name
    this.#raw = raw
    this.#where = where
    this.#problems = problems
  }

  refuse(text: string, member?: string): void {
    const where = (member === undefined ? undefined : this.#raw.get(member)?.where) ?? this.#where
    this.#problems.push({ where, text: `schedule.${JSON.stringify(this.#name)}: ${text}` })
  }

  /** A member by its kind; undefined when it is absent or malformed. */
  member<M extends OwnMember>(member: M): ValueOf<M> | undefined {
    const given = this.#raw.get(member)
    if (given === undefined) return undefined
    const reading = (KINDS[member] as is.Kind<ValueOf<M>>)(given.value)
    if ('value' in reading) return reading.value
    this.refuse(`${member}: ${reading.wrong}`, member)
    return undefined
  }

  /** A member as a text; undefined when it is absent, empty or malformed. */
  text(member: ScheduleMember): string | undefined {
    const given = this.#raw.get(member)
    if (given === undefined) return undefined
    if (typeof given.value === 'string' && given.value.trim() !== '') return given.value.trim()
    this.refuse(`${member}: expected a text`, member)
    return undefined
  }

  times(): Pick<ScheduleTable, 'at' | 'zone' | 'times'> | undefined {
    const [at, zone] = [this.text('at'), this.#raw.has('zone') ? this.text('zone') : 'UTC']
    if (!this.#raw.has('at')) this.refuse('at is missing; write a cron expression such as "30 2 * * *", every day at 02:30')
    const hasZone = zone !== undefined && isTimeZone(zone)
    if (zone !== undefined && !hasZone)
      this.refuse(`zone: ${JSON.stringify(zone)} is not a time zone; write a name such as "Europe/Berlin"`, 'zone')
    if (at === undefined) return undefined
    const mistakes = cronMistakes(at)
    for (const mistake of mistakes) this.refuse(`at: ${mistake}`, 'at')
    if (mistakes.length > 0 || !hasZone) return undefined
    const times = new RunTimes(new CronExpression(at, zone))
    if (times.next(TRIED_FROM) !== null) return { at, zone, times }
    this.refuse(`at: ${JSON.stringify(at)} matches on no day: both the day of month and the day of week must match`, 'at')
    return undefined
  }

  action(): ScheduledAction | undefined {
    const given = this.text('do')
    const name = ACTION_NAMES.find((one) => one === given)
    const known = `write one of ${ACTION_NAMES.map((one) => `"${one}"`).join(', ')}`
    if (!this.#raw.has('do')) this.refuse(`do is missing; ${known}`)
    else if (given !== undefined && name === undefined) this.refuse(`do: ${JSON.stringify(given)} is unknown; ${known}`, 'do')
    const values = this.#values()
    if (name === undefined) return undefined
    this.#noteMembers(name)
    return this.#actionOf(name, values)
  }

  #values(): OwnValues {
    return {
      to: this.member('to'),
      keep: this.member('keep'),
      notify: this.member('notify'),
      destinations: this.member('destinations'),
      duration: this.member('for'),
      domains: this.member('domains'),
    }
  }

  #actionOf(name: ActionName, values: OwnValues): ScheduledAction | undefined {
    const { to, keep = null, notify, destinations, duration = null, domains } = values
    switch (name) {
      case 'backup':
        if (to !== undefined && this.#raw.has('keep') && !/\{date\}|\{time\}/.test(to))
          this.refuse('keep: all files would have the name of to: write {date} or {time} into it, or remove keep', 'keep')
        return to === undefined ? undefined : { do: name, to, keep }
      case 'report':
        return notify === undefined ? undefined : { do: name, notify }
      case 'suspend':
        return destinations === undefined ? undefined : { do: name, destinations, duration }
      case 'resume':
      case 'flush':
        return destinations === undefined ? undefined : { do: name, destinations }
      case 'check domain':
        return domains === undefined ? undefined : { do: name, domains }
    }
  }

  /** Notes each missing required member, and each member that a table with this work cannot have. */
  #noteMembers(name: ActionName): void {
    const members: readonly string[] = ACTION_MEMBERS[name]
    for (const member of members)
      if (!member.endsWith('?') && !this.#raw.has(member)) this.refuse(`${member} is missing; a table with do = "${name}" needs it`)
    const allowed = new Set(['at', 'zone', 'do', ...members.map((member) => member.replace('?', ''))])
    for (const key of this.#raw.keys())
      if (isScheduleMember(key) && !allowed.has(key)) this.refuse(`${key} has no meaning with do = "${name}": remove it`, key)
  }

  noteUnknown(): void {
    const known = Object.keys(SCHEDULE_MEMBERS).join(', ')
    for (const key of this.#raw.keys()) if (!isScheduleMember(key)) this.refuse(`unknown member ${key}; a table has ${known}`, key)
  }
}

function readScheduleTable(
  name: string,
  source: { readonly raw: ReadonlyMap<string, RawValue>; readonly where: string },
  problems: Problem[],
) {
  const table = new TableReader(name, source, problems)
  if (!NAME.test(name))
    table.refuse('expected a name of lower-case letters, digits, dots, hyphens and underscores, such as [schedule.nightly-backup]')
  table.noteUnknown()
  const [times, action] = [table.times(), table.action()]
  return times === undefined || action === undefined ? undefined : { name, ...times, action, where: source.where }
}

/** Reads all tables. Adds the problems to `problems`. */
export function readScheduleTables(
  raw: Pick<RawSettings, 'schedules' | 'whereOfSchedule'>,
  config: Parameters<typeof sharedPlace>[0],
  problems: Problem[],
): ReadonlyMap<string, ScheduleTable> {
  const tables = new Map<string, ScheduleTable>()
  const files = new Map<string, string>()
  for (const [name, table] of raw.schedules) {
    const where = raw.whereOfSchedule.get(name) ?? ''
    const read = readScheduleTable(name, { raw: table, where }, problems)
    if (read === undefined) continue
    tables.set(name, read)
    if (read.action.do !== 'backup') continue
    const refuse = (member: string, text: string): void =>
      void problems.push({ where: table.get(member)?.where ?? where, text: `schedule.${JSON.stringify(name)}: ${text}` })
    const place = sharedPlace(config)
    if (place !== null) refuse('do', `do: the queue is in ${place.title}, which ${place.copiedBy} copy: remove the table`)
    const other = files.get(read.action.to)
    if (other !== undefined) refuse('to', `to: [schedule.${other}] writes the same file; name another one`)
    files.set(read.action.to, name)
  }
  return tables
}
