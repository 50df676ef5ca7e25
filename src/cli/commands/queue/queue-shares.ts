/** `deferd queue shares`: what waits of each share of the queue, and what it had of the deliveries. */
import type { Command } from 'commander'
import { DestinationPolicies } from '../../../config/destination-policies.ts'
import type { Config } from '../../../config/options.ts'
import { grouped, jsonLine } from '../../../presentation/text.ts'
import { MOST_SHARES, sharesOf, type ShareQuery } from '../../../queries/shares.ts'
import { openShareWeights, ShareWeights } from '../../../queue/intake/share-weights.ts'
import type { ShareUseJson, SharesJson } from '../../../resources/share-json.ts'
import { queryOf } from '../../queue-client/api-connection.ts'
import type { Display } from '../../render/style.ts'
import { tableHeading, tableRow, widthBeside, type Column } from '../../render/table.ts'
import { configOf, countArgument, subcommand } from '../../shell/config-options.ts'
import { displayOf } from '../../shell/display.ts'
import { resourceOf, withSource, type Shell } from '../../shell/shell.ts'

/** Rows of a listing without --limit. */
const ROWS = 100

const CLASS: Column = { heading: 'CLASS', width: 10, cut: 'middle' }
/** Columns beside the key, which has the rest of the line, and the class. */
const OTHERS: readonly Column[] = [
  { heading: 'WEIGHT', width: 6 },
  { heading: 'WAITING', width: 9 },
  { heading: 'IN FLIGHT', width: 9 },
  { heading: 'STARTS', width: 7 },
  { heading: 'WANTED', width: 6 },
  { heading: 'GOT', width: 6 },
]

/** Without classes, there is no column for them. */
function columnsOf(hasClasses: boolean, display: Display): readonly Column[] {
  const others = hasClasses ? [CLASS, ...OTHERS] : OTHERS
  return [{ heading: 'SHARE', width: Math.min(40, Math.max(12, widthBeside(others, display) - 1)), cut: 'middle' }, ...others]
}

const percent = (part: number | null): string => (part === null ? '' : `${(part * 100).toFixed(1)}%`)

const rowOf = (one: ShareUseJson): readonly string[] => [
  one.key === '' ? '(none)' : one.key,
  ...(one.class === null ? [] : [one.class]),
  String(one.weight),
  grouped(one.waiting),
  grouped(one.in_flight),
  grouped(one.started),
  percent(one.wanted),
  percent(one.got),
]

function textOf({ fair_share: isFair, total, shares }: SharesJson, display: Display): readonly string[] {
  if (!isFair) return ['Deliveries are not shared fairly; set fair_share = "yes" for that (docs/classes.md).']
  if (shares.length === 0) return ['No share has mail.']
  const columns = columnsOf(
    shares.some((one) => one.class !== null),
    display,
  )
  const more = total > shares.length ? [`${grouped(total - shares.length)} more shares; --limit shows more of them`] : []
  return [tableHeading(columns, display), ...shares.map((one) => tableRow(rowOf(one), columns, display)), ...more]
}

/** Policies without a daemon. The numbers of classes are not needed, as deliveries have the names of their classes. */
const policiesOf = (config: Config): DestinationPolicies =>
  new DestinationPolicies(config, undefined, undefined, ShareWeights.of(config, openShareWeights(config).table))

async function list(
  shell: Shell,
  { class: name, limit = ROWS, json }: { class?: string; limit?: number; json?: true },
  command: Command,
): Promise<void> {
  const { config } = await configOf(shell, command)
  const answer = await answerOf(shell, config, { class: name, limit: Math.min(limit, MOST_SHARES) })
  const lines = json === true ? answer.shares.map(jsonLine) : textOf(answer, displayOf(shell)).map((line) => `${line}\n`)
  await shell.stdout.write(lines.join(''))
}

/** The answer of the daemon of this machine, which knows the deliveries of all nodes; without one, they are asked here. */
async function answerOf(shell: Shell, config: Config, query: ShareQuery): Promise<SharesJson> {
  const path = `/shares${queryOf({ class: query.class, limit: String(query.limit) })}`
  const live = shell.api === null ? await shell.liveShares(config, path) : null
  if (live !== null) return live
  return withSource(shell, config, (source) =>
    resourceOf<SharesJson>(source, path, ({ reader }) =>
      sharesOf({ reader, policies: () => policiesOf(config), live: { shares: () => shell.nodeShares(config) } }, query),
    ),
  )
}

export function addQueueShares(parent: Command, shell: Shell): void {
  subcommand(parent, 'shares', 'show what waits of each share, and what it had of the deliveries')
    .option('--class <name>', 'name of a [class.NAME] table')
    .option('--limit <n>', 'at most so many rows', countArgument)
    .option('--json', 'one JSON object per share')
    .addHelpText(
      'after',
      `
A share is the mail of one user, token, sender domain or client (share_key). With fair_share, shares have deliveries
by their weights: WANTED is the part of its class, GOT what it had in the last minute. docs/classes.md has the rules.`,
    )
    .action((options: { class?: string; limit?: number; json?: true }, command: Command) => list(shell, options, command))
}
