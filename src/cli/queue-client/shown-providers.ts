/** Providers as commands show them: from the queue and the running daemon of this machine, or from the API of a relay. */
import type { Config } from '../../config/options.ts'
import { loads } from '../../queries/destination-list.ts'
import { providerFacts, unknownProvider } from '../../queries/providers.ts'
import {
  providerDetailsJson,
  providerJson,
  type ProviderDetailsJson,
  type ProviderFacts,
  type ProviderJson,
  type ProvidersJson,
} from '../../resources/provider-json.ts'
import type { DestinationName } from '../../mail/message.ts'
import type { QueuedCount } from '../../store/destination-status.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { withSource, type OpenedReader, type Shell } from '../shell/shell.ts'
import { segment } from './api-connection.ts'
import { nodesOf } from './shown-destinations.ts'

async function factsOf(shell: Shell, config: Config, { reader }: OpenedReader): Promise<readonly ProviderFacts[]> {
  const queued = new Map<DestinationName, QueuedCount>()
  for await (const one of loads(reader)) queued.set(one.destination, one)
  const live = (await shell.liveDestinations(config)) ?? []
  return providerFacts({ tables: config.provider, reader, queued, live, nodeOf: await nodesOf(shell, config) })
}

/** All providers of the configuration, by name. */
export const shownProviders = (shell: Shell, config: Config): Promise<readonly ProviderJson[]> =>
  withSource(shell, config, async (source) => {
    if (source.api !== null) return (await source.api.get<ProvidersJson>('/providers')).providers
    return (await factsOf(shell, config, source)).map((facts) => providerJson(facts, source.clock.wall))
  })

/** Throws CommandError for a provider that the configuration of this machine does not have. The API of a relay answers for its own. */
export function assertKnown(shell: Shell, config: Config, name: string): void {
  if (shell.api === null && !config.provider.has(name)) throw new CommandError(EX.data, unknownProvider(name, config))
}

/** One provider. Throws as `assertKnown` does. */
export function shownProvider(shell: Shell, config: Config, name: string): Promise<ProviderDetailsJson> {
  assertKnown(shell, config, name)
  return withSource(shell, config, async (source) => {
    if (source.api !== null) return source.api.get<ProviderDetailsJson>(`/providers/${segment(name)}`)
    const facts = (await factsOf(shell, config, source)).find((one) => one.name === name)
    if (facts === undefined) throw new CommandError(EX.data, unknownProvider(name, config))
    const { wall } = source.clock
    return providerDetailsJson(facts, wall.seconds(source.clock.now()), wall)
  })
}
