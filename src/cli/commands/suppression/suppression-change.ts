/** `deferd suppression add`, `remove`, `import` and `resume`. */
import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { localTime, maskControls, plural } from '../../../presentation/text.ts'
import { momentOf } from '../../../mail/message-times.ts'
import type { Config } from '../../../config/options.ts'
import { ALL_SENDERS, type SuppressionReason } from '../../../store/records/suppression-entry.ts'
import { importedLines } from '../../../suppression/import-lines.ts'
import type { Duration } from '../../../system/clock.ts'
import { clockOf } from '../../../system/queue-clock.ts'
import { configOf } from '../../shell/config-options.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import type { GivenRemoval, QueueClient } from '../../shell/queue-client.ts'
import type { Shell } from '../../shell/shell.ts'
import { addressOf, entriesText, queryIn, scopeOf, type FilterOptions } from './suppression-filter.ts'

/** Mistakes of an import that are printed. */
const MOST_MISTAKES = 1_000

async function withClient<T>(shell: Shell, command: Command, act: (client: QueueClient, config: Config) => Promise<T>): Promise<T> {
  const { config } = await configOf(shell, command)
  const client = await shell.openQueueClient(config)
  try {
    return await act(client, config)
  } finally {
    await client.close()
  }
}

export interface AddOptions {
  readonly scope: string
  readonly reason: SuppressionReason
  readonly text?: string
  readonly for?: Duration
}

export async function add(shell: Shell, given: string, options: AddOptions, command: Command): Promise<void> {
  const { scope: of, reason } = options
  const text = options.text ?? null
  const duration = options.for ?? null
  const [address, scope] = [addressOf(given), scopeOf(of)]
  if (duration !== null && duration <= 0) throw new CommandError(EX.usage, '--for must be longer than 0')
  const setting = await withClient(shell, command, async (client, config) => {
    await client.addSuppression({ scope, address, reason, text, duration }, shell.user)
    return config.suppression
  })
  const end = duration === null ? 'until it is removed' : `until ${localTime(shell.clock.now() + duration, shell.clock)}`
  await shell.stdout.write(
    `${maskControls(`${address}: on the list for ${scope === ALL_SENDERS ? 'all senders' : scope} (${reason}), ${end}`)}\n`,
  )
  if (setting !== 'yes')
    await shell.stdout.write(`mail to it is accepted, because suppression = ${setting}; set suppression = yes to refuse it\n`)
}

export async function remove(
  shell: Shell,
  addresses: readonly string[],
  { dryRun, all, ...filter }: FilterOptions & { dryRun?: true; all?: true },
  command: Command,
): Promise<void> {
  const query = queryIn(filter)
  const isEmpty = Object.keys(query).length === 0
  if (addresses.length === 0 && isEmpty !== (all === true))
    throw new CommandError(EX.usage, isEmpty ? 'name addresses, a condition, or --all' : '--all goes with no condition')
  if (addresses.length > 0 && (all === true || Object.keys(query).some((name) => name !== 'scope')))
    throw new CommandError(EX.usage, 'name addresses, with --scope if needed, or conditions')
  const scope = query.scope ?? ALL_SENDERS
  const selection: GivenRemoval['selection'] =
    addresses.length > 0 ? { kind: 'keys', keys: addresses.map((one) => ({ scope, address: addressOf(one) })) } : { kind: 'filter', query }
  const { removed, entries } = await withClient(shell, command, (client) =>
    client.removeSuppressions({ selection, dryRun: dryRun === true, who: shell.user }),
  )
  if (removed === 0)
    throw new CommandError(
      EX.data,
      `no entry matches; deferd suppression list shows all${addresses.length > 0 ? ', with their scopes' : ''}`,
    )
  for (const one of entries) await shell.stdout.write(`${maskControls(`${one.address} (${one.scope})`)}\n`)
  if (removed > entries.length) await shell.stdout.write(`and ${removed - entries.length} more\n`)
  await shell.stdout.write(`${entriesText(removed)} ${dryRun === true ? 'would be ' : ''}removed\n`)
}

export async function importFile(
  shell: Shell,
  file: string,
  { scope: of, dryRun }: { scope: string; dryRun?: true },
  command: Command,
): Promise<void> {
  const scope = scopeOf(of)
  const text = file === '-' ? await textOf(shell.stdin) : await textIn(file)
  const { entries, mistakes } = importedLines(text, { scope, ...momentOf(clockOf(null, shell.clock)) })
  for (const one of mistakes.slice(0, MOST_MISTAKES)) await shell.stderr.write(`${maskControls(`${file}:${one.line}: ${one.text}`)}\n`)
  if (mistakes.length > 0)
    throw new CommandError(EX.data, `nothing was imported: ${plural(mistakes.length, 'line')} of ${maskControls(file)} cannot be used`)
  const imported =
    dryRun === true ? entries.length : await withClient(shell, command, (client) => client.importSuppressions(text, scope, shell.user))
  await shell.stdout.write(`${entriesText(imported)} ${dryRun === true ? 'would be ' : ''}imported\n`)
}

async function textIn(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    throw new CommandError(EX.ioError, `cannot read ${maskControls(file)}`, { cause })
  }
}

async function textOf(input: AsyncIterable<Uint8Array | string>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of input) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString()
}

export async function resume(shell: Shell, given: string, command: Command): Promise<void> {
  const scope = scopeOf(given)
  const isResumed = await withClient(shell, command, (client) => client.resumeSuppressions(scope, shell.user))
  if (!isResumed) throw new CommandError(EX.data, `the listing of addresses of ${maskControls(scope)} is not stopped`)
  await shell.stdout.write(`${maskControls(scope)}: addresses are listed again\n`)
}
