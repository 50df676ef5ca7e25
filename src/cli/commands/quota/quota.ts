/** `deferd quota`: lists, shows and resets what keys have used of quotas. */
import type { Command } from 'commander'
import { instantOf, jsonLine, maskControls, relative } from '../../../presentation/text.ts'
import { quotaUses, quotaUsesOf } from '../../../queries/records/quota-uses.ts'
import type { QuotaUseJson, QuotaUsesJson } from '../../../resources/records/quota-json.ts'
import type { WallTime } from '../../../system/clock.ts'
import { queryOf, segment } from '../../queue-client/api-connection.ts'
import { tableHeading, tableRow, widthBeside, type Column } from '../../render/table.ts'
import type { Display } from '../../render/style.ts'
import { configOf, countArgument, subcommand } from '../../shell/config-options.ts'
import { displayOf } from '../../shell/display.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { resourceOf, withSource, type QueueSource, type Shell } from '../../shell/shell.ts'

/** Rows of a listing without --limit. */
const ROWS = 100

async function print(shell: Shell, uses: readonly QuotaUseJson[], { source, json }: { source: QueueSource; json: boolean }): Promise<void> {
  if (json) return shell.stdout.write(uses.map(jsonLine).join(''))
  const display = displayOf(shell)
  const columns = columnsOf(display)
  const now = source.clock.wall.now()
  const lines = [tableHeading(columns, display), ...uses.map((one) => tableRow(rowOf(one, now), columns, display))]
  await shell.stdout.write(lines.map((line) => `${line}\n`).join(''))
}

/** Columns beside the key, which has the rest of the line. */
const OTHERS: readonly Column[] = [
  { heading: 'QUOTA', width: 14, cut: 'middle' },
  { heading: 'LIMIT', width: 19 },
  { heading: 'USED', width: 8 },
  { heading: 'HELD', width: 6 },
  { heading: 'ROOM', width: 10 },
]

const columnsOf = (display: Display): readonly Column[] => [
  { heading: 'KEY', width: Math.min(40, Math.max(12, widthBeside(OTHERS, display) - 1)), cut: 'middle' },
  ...OTHERS,
]

const rowOf = ({ key, quota, limit, used, planned, room_time: room }: QuotaUseJson, now: WallTime): readonly string[] => [
  key,
  quota,
  limit,
  String(used),
  planned === 0 ? '' : String(planned),
  room === null ? 'now' : relative(instantOf(room), now),
]

async function list(
  shell: Shell,
  { quota, limit = ROWS, json }: { quota?: string; limit?: number; json?: true },
  command: Command,
): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    const path = `/quotas${queryOf({ quota, limit: String(limit) })}`
    const { uses } = await resourceOf<QuotaUsesJson>(source, path, (opened) => quotaUses(opened, config, { quota, limit }))
    if (uses.length > 0 || json === true) return print(shell, uses, { source, json: json === true })
    await shell.stdout.write('No quota is used.\n')
  })
}

async function show(shell: Shell, key: string, { json }: { json?: true }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    const { uses } = await resourceOf<QuotaUsesJson>(source, `/quotas/${segment(key)}`, (opened) => quotaUsesOf(opened, config, key))
    if (uses.length === 0)
      throw new CommandError(EX.data, `${maskControls(key)} has used nothing of any quota; deferd quota list shows the keys`)
    await print(shell, uses, { source, json: json === true })
  })
}

async function reset(shell: Shell, key: string, { quota = null }: { quota?: string | null }, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const client = await shell.openQueueClient(config)
  try {
    if (!(await client.resetQuota({ key, quota, who: shell.user })))
      throw new CommandError(
        EX.data,
        `${maskControls(key)} has used nothing of ${quota === null ? 'any quota' : maskControls(quota)}; deferd quota list shows the keys`,
      )
  } finally {
    await client.close()
  }
  await shell.stdout.write(`${maskControls(key)}: counts are reset\n`)
}

export function addQuota(program: Command, shell: Shell): void {
  const parent = program.command('quota').description('show and reset how much mail users, senders and clients have sent of their quotas')
  subcommand(parent, 'list', 'list the fullest quotas')
    .option('--quota <name>', 'name of a [quota.NAME] table')
    .option('--limit <n>', 'at most so many rows', countArgument)
    .option('--json', 'one JSON object per limit of a key')
    .action((options: { quota?: string; limit?: number; json?: true }, command: Command) => list(shell, options, command))
  subcommand(parent, 'show <key>', 'show all quotas of a key: a user, token:NAME, sender, sender domain or client')
    .option('--json', 'one JSON object per limit')
    .action((key: string, options: { json?: true }, command: Command) => show(shell, key, options, command))
  subcommand(parent, 'reset <key>', 'forget what a key has used')
    .option('--quota <name>', 'of one [quota.NAME] table only')
    .addHelpText(
      'after',
      `
Mail of the key that a quota holds is planned anew, and leaves as far as there is room. docs/quotas.md has the rules.

Example:
  deferd quota reset app@example.com`,
    )
    .action((key: string, options: { quota?: string }, command: Command) => reset(shell, key, options, command))
}
