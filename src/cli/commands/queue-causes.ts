/** `deferd queue causes`: replies for which mail waits, summed over destinations or by destination, with the options that select each. */
import type { Command } from 'commander'
import { summedCauses, waitingCauses } from '../../queue/waiting-causes.ts'
import { causeJson, summedCauseJson } from '../../resources/cause-json.ts'
import { causeList, causeSums } from '../render/cause-list.ts'
import { recordsByName } from '../../presentation/recipient-status.ts'
import { jsonLine } from '../../presentation/text.ts'
import { configOf, countArgument, subcommand } from '../shell/config-options.ts'
import { displayOf } from '../shell/display.ts'
import { withReader, type Shell } from '../shell/shell.ts'

interface Options {
  readonly destination?: string
  readonly details?: true
  readonly limit: number
  readonly json?: true
}

const LIMIT = 10

async function print(shell: Shell, { destination, details, limit, json }: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withReader(shell, config, async ({ reader, clock }) => {
    const found = await waitingCauses(reader, destination?.toLowerCase() ?? null)
    const isSum = details !== true && destination === undefined
    if (json !== true && found.length === 0) return await shell.stdout.write('No mail waits.\n')
    if (isSum) {
      const sums = summedCauses(found).map((sum) => summedCauseJson(sum, clock.wall))
      return await shell.stdout.write(json === true ? sums.map(jsonLine).join('') : causeSums(sums, { display: displayOf(shell), limit }))
    }
    const causes = found.map((cause) => causeJson(cause, clock.wall))
    if (json === true) return await shell.stdout.write(causes.map(jsonLine).join(''))
    const records = recordsByName(await reader.destinationRecords())
    const live = new Map((await shell.liveDestinations(config))?.map((one) => [one.destination, one]))
    const known = (name: string) => ({ live: live.get(name), record: records.get(name) })
    const facts = { now: clock.now(), wall: clock.wall, display: displayOf(shell), known, limit }
    await shell.stdout.write(causeList(causes, facts))
  })
}

export function addQueueCauses(parent: Command, shell: Shell): void {
  subcommand(parent, 'causes', 'print the replies for which mail waits, with the filter that selects each')
    .option('--destination <name>', 'only this destination, with examples')
    .option('--details', 'the causes of each destination, with examples')
    .option('--limit <n>', 'causes shown, or causes shown per destination', countArgument, LIMIT)
    .option('--json', 'one JSON object per cause, or per cause and destination with --details or --destination')
    .addHelpText(
      'after',
      `
Replies that differ in numbers, ids, addresses, hosts and URLs only are one cause, summed over destinations. Mail on hold is counted
apart. The line of options below a cause selects its recipients in other commands as it is:
  deferd queue hold --destination gmail.com --reply 'unusual rate of mail'

"since" and "last" are the earliest and the latest attempt of the waiting mail with this cause.`,
    )
    .action((options: Options, command: Command) => print(shell, options, command))
}
