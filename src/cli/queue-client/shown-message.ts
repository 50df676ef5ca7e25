/** One message as commands show it, from the queue of this machine or from the API of a relay. */
import { DestinationPolicies } from '../../config/destination-policies.ts'
import type { Config } from '../../config/options.ts'
import { ProviderDirectory } from '../../config/provider-directory.ts'
import { parseQueueId } from '../../mail/queue-id.ts'
import { liveByName, recordsByName } from '../../presentation/recipient-status.ts'
import { maskControls } from '../../presentation/text.ts'
import { storyJson, type MessageStoryJson, type StoryJson } from '../../resources/message-story-json.ts'
import type { LiveDestination } from '../../queue/scheduler/destination.ts'
import type { MessageDetails, QueueReader } from '../../store/queue-reader.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { QueueSource } from '../shell/shell.ts'
import { segment } from './api-connection.ts'

interface StoryParts {
  readonly config: Config
  readonly live: () => Promise<readonly LiveDestination[] | null>
}

/** Reads a message; throws CommandError (65) when the id is unknown. */
export async function detailsOf(reader: QueueReader, id: string): Promise<MessageDetails> {
  const story = parseQueueId(id) === undefined ? undefined : await reader.details(id)
  if (story === undefined)
    throw new CommandError(EX.data, `there is no message ${maskControls(id)}, neither in the queue nor in its history`)
  return story
}

/** The value of `queue show --json`. `live` has the destinations in memory, for the queue of this machine. */
export async function storyFrom(source: QueueSource, id: string, { config, live }: StoryParts): Promise<StoryJson> {
  if (source.api !== null) {
    const whole = await source.api.get<MessageStoryJson>(`/messages/${segment(id)}`)
    const { client: _client, sasl_username: _user, operations: _operations, future: _future, ...story } = whole
    return story
  }
  const { reader, clock } = source
  const story = await detailsOf(reader, id)
  const providers = new ProviderDirectory()
  const members = config.provider.size === 0 ? [] : await reader.records.providerMembers.all()
  for (const { destination, provider } of members) providers.set(destination, provider)
  const policies = new DestinationPolicies(config, providers)
  const records = recordsByName(await reader.destinationRecords())
  const beside = { policies, wall: clock.wall, trashLifetime: config.trash_lifetime, content: true }
  return storyJson({ story, records, live: liveByName((await live()) ?? []), ...beside })
}
