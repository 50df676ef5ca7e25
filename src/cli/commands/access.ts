/** `deferd access`: adds, lists and removes access entries, which apply before the restrictions of the configuration. */
import { Argument, type Command } from 'commander'
import { parseAccessAction } from '../../access/access-action.ts'
import { accessKey } from '../../access/access-entries.ts'
import { instantOf, jsonLine, localTime, maskControls, relative } from '../../presentation/text.ts'
import { ACCESS_SUBJECTS, type AccessSubject } from '../../store/records/access-entry.ts'
import { errorMessage } from '../../system/caught-error.ts'
import type { Duration, WallTime } from '../../system/clock.ts'
import { accessEntries } from '../../queries/records/kept-records.ts'
import type { AccessEntryJson } from '../../resources/records/access-entry-json.ts'
import { tableHeading, tableRow, widthBeside, type Column } from '../render/table.ts'
import type { Display } from '../render/style.ts'
import { displayOf } from '../shell/display.ts'
import { configOf, durationArgument, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { QueueClient } from '../shell/queue-client.ts'
import { resourceOf, withSource, type Shell } from '../shell/shell.ts'

/** Returns the result of a parser. Its error ends the command with 64. */
function parsed<T>(parse: () => T): T {
  try {
    return parse()
  } catch (cause) {
    throw new CommandError(EX.usage, maskControls(errorMessage(cause)), { cause })
  }
}

async function withClient<T>(shell: Shell, command: Command, act: (client: QueueClient) => Promise<T>): Promise<T> {
  const { config } = await configOf(shell, command)
  const client = await shell.openQueueClient(config)
  try {
    return await act(client)
  } finally {
    await client.close()
  }
}

interface Addition {
  readonly subject: AccessSubject
  readonly key: string
  readonly action: string
  readonly duration: Duration | null
}

async function add(shell: Shell, { subject, key: given, action, duration }: Addition, command: Command): Promise<void> {
  const key = parsed(() => accessKey(subject, given))
  parsed(() => parseAccessAction(action))
  if (duration !== null && duration <= 0) throw new CommandError(EX.usage, '--for must be longer than 0')
  await withClient(shell, command, (client) => client.addAccess({ subject, key, action, duration, who: shell.user }))
  const end = duration === null ? 'until it is removed' : `until ${localTime(shell.clock.now() + duration, shell.clock)}`
  await shell.stdout.write(`${maskControls(`${subject} ${key}: ${action}, ${end}`)}\n`)
}

async function remove(shell: Shell, subject: AccessSubject, given: string, command: Command): Promise<void> {
  const key = parsed(() => accessKey(subject, given))
  const isRemoved = await withClient(shell, command, (client) => client.removeAccess(subject, key, shell.user))
  if (!isRemoved) throw new CommandError(EX.data, `no access entry for ${subject} ${maskControls(key)}; deferd access list shows all`)
  await shell.stdout.write(`${maskControls(`${subject} ${key}`)}: removed\n`)
}

async function list(shell: Shell, options: { readonly json?: true }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    const { entries } = await resourceOf(source, '/access', accessEntries)
    const text = options.json === true ? entries.map(jsonLine).join('') : entryTable(entries, source.clock.wall.now(), displayOf(shell))
    await shell.stdout.write(text)
  })
}

const HEADINGS = ['SUBJECT', 'KEY', 'ACTION', 'ENDS', 'ADDED BY']

function entryTable(entries: readonly AccessEntryJson[], now: WallTime, display: Display): string {
  if (entries.length === 0) return 'No access entries.\n'
  const rows = entries.map(({ subject, key, action, added_by: addedBy, expire_time: expires }) => [
    subject,
    key,
    action,
    expires === null ? 'never' : relative(instantOf(expires), now),
    addedBy,
  ])
  const columns = columnsOf(rows, display)
  return [tableHeading(columns, display), ...rows.map((row) => tableRow(row, columns, display))].map((line) => `${line}\n`).join('')
}

/** Columns as wide as their longest text. On a narrow display, keys are cut in the middle and actions at their end. */
function columnsOf(rows: readonly (readonly string[])[], display: Display): readonly Column[] {
  const natural = HEADINGS.map((heading, i) => ({
    heading,
    width: rows.reduce((most, row) => Math.max(most, maskControls(row[i] ?? '').length), heading.length),
  }))
  const [subject = NONE, key = NONE, action = NONE, ...others] = natural
  const room = widthBeside([subject, ...others], display) - 1
  const ofKey = Math.max(LEAST_KEY_WIDTH, Math.min(key.width, room - Math.min(action.width, Math.floor(room / 2))))
  const ofAction = Math.max(action.heading.length, Math.min(action.width, room - ofKey))
  return [subject, { ...key, width: ofKey, cut: 'middle' }, { ...action, width: ofAction }, ...others]
}

const NONE: Column = { heading: '', width: 0 }
const LEAST_KEY_WIDTH = 8

const subjectArgument = (): Argument =>
  new Argument('<subject>', 'property of the session that the entry is about').choices(ACCESS_SUBJECTS)

export function addAccess(program: Command, shell: Shell): void {
  const parent = program.command('access').description('refuse, hold or permit mail of clients, senders and recipients')
  subcommand(parent, 'add', 'add an entry in place of the one with the same subject and key')
    .addArgument(subjectArgument())
    .argument('<key>', 'address, network, domain or user@, as in an access table')
    .argument('<action...>', 'action of an access table: REJECT text, DEFER text, HOLD, DISCARD, REDIRECT address, OK')
    .option('--for <time>', 'remove the entry after this time: 30m, 2h, 1d', durationArgument)
    .addHelpText(
      'after',
      `
Entries apply from the next RCPT on, at all nodes of a shared queue within 5 seconds, and survive restarts. They come before the list of the
configuration for the same subject; OK skips that list. docs/access.md has the actions.

Examples:
  deferd access add sender app@example.com REJECT too many bounces --for 2h
  deferd access add client 192.0.2 HOLD`,
    )
    .action(
      (subject: AccessSubject, key: string, action: readonly string[], ...[options, command]: [{ readonly for?: Duration }, Command]) =>
        add(shell, { subject, key, action: action.join(' '), duration: options.for ?? null }, command),
    )
  subcommand(parent, 'list', 'list the entries')
    .option('--json', 'one JSON object per entry')
    .action((options: { readonly json?: true }, command: Command) => list(shell, options, command))
  subcommand(parent, 'remove', 'remove an entry')
    .addArgument(subjectArgument())
    .argument('<key>', 'key of the entry')
    .action((subject: AccessSubject, key: string, _options: unknown, command: Command) => remove(shell, subject, key, command))
}
