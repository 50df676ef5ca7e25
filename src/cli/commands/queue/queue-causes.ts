/** `deferd queue causes`: replies for which mail waits, summed over destinations or by destination, with the options that select each. */
import type { Command } from 'commander'
import { summedCauses, waitingCauses } from '../../../queue/waiting-causes.ts'
import type { HealthJson } from '../../../resources/destination-json.ts'
import { causeJson, summedCauseJson, type CausesJson, type SummedCausesJson } from '../../../resources/cause-json.ts'
import { causeList, causeSums } from '../../render/cause-list.ts'
import { jsonLine } from '../../../presentation/text.ts'
import { configOf, countArgument, subcommand } from '../../shell/config-options.ts'
import { displayOf } from '../../shell/display.ts'
import { segment } from '../../queue-client/api-connection.ts'
import { shownDestinations, type ShownDestinations } from '../../queue-client/shown-destinations.ts'
import { resourceOf, withSource, type QueueSource, type Shell } from '../../shell/shell.ts'

interface Options {
  readonly destination?: string
  readonly details?: true
  readonly limit: number
  readonly json?: true
}

const LIMIT = 10

/** The states of destinations. */
async function healths(shown: ShownDestinations, names: ReadonlySet<string>): Promise<ReadonlyMap<string, HealthJson>> {
  const known = new Map<string, HealthJson>()
  for await (const one of shown.all()) if (names.has(one.destination)) known.set(one.destination, one)
  return known
}

/** The causes summed over destinations. */
const sumsOf = (source: QueueSource): Promise<Pick<SummedCausesJson, 'causes'>> =>
  resourceOf(source, '/causes', async ({ reader, clock }) => ({
    causes: summedCauses(await waitingCauses(reader, null)).map((sum) => summedCauseJson(sum, clock.wall)),
  }))

/** The causes of a destination; those of all for undefined. */
const causesOf = (source: QueueSource, destination: string | undefined): Promise<Pick<CausesJson, 'causes'>> =>
  resourceOf(
    source,
    destination === undefined ? '/causes?by=destination' : `/destinations/${segment(destination)}/causes`,
    async ({ reader, clock }) => ({
      causes: (await waitingCauses(reader, destination?.toLowerCase() ?? null)).map((cause) => causeJson(cause, clock.wall)),
    }),
  )

async function print(shell: Shell, { destination, details, limit, json }: Options, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  await withSource(shell, config, async (source) => {
    const isSum = details !== true && destination === undefined
    const { causes } = await (isSum ? sumsOf(source) : causesOf(source, destination))
    if (json === true) return await shell.stdout.write(causes.map(jsonLine).join(''))
    if (causes.length === 0) return await shell.stdout.write('No mail waits.\n')
    const display = displayOf(shell)
    const apart = causes.filter((one) => 'destination' in one)
    const sums = causes.filter((one) => 'destinations' in one)
    if (isSum) return await shell.stdout.write(causeSums(sums, { display, limit }))
    const states = await healths(await shownDestinations(shell, config, source), new Set(apart.map((one) => one.destination)))
    await shell.stdout.write(causeList(apart, { now: source.clock.wall.now(), display, states, limit }))
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
