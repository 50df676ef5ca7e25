/** One message: its attempts, where it came from, the operations on it, and its future. */
import type { Requester } from '../../http/requests/requester.ts'
import { isLive } from '../../mail/message.ts'
import { liveByName } from '../../presentation/recipient-status.ts'
import { futureJson } from '../../resources/future-attempts-json.ts'
import { operationJson } from '../../resources/operation-json.ts'
import { storyJson, type MessageStoryJson } from '../../resources/message-story-json.ts'
import { messageDetails } from '../messages.ts'
import { seesOperation } from '../operations/operations-view.ts'
import { recordsOf, type QueueView } from '../queue-view.ts'

/** The members of `deferd queue show --json`, with those that only the API has. Throws Problem for a message that the client may not see. */
export async function messageStory(view: QueueView, queueId: string, requester: Requester): Promise<MessageStoryJson> {
  const story = await messageDetails(view, queueId, requester.destinations)
  const { id, client, saslUsername } = story.message
  const operations = await view.reader.records.audit.on(id)
  const { wall } = view.clock
  const names = new Set(story.recipients.filter(isLive).map(({ destination }) => destination))
  const live = liveByName(names.size === 0 ? [] : await view.live.named([...names]))
  const trashLifetime = view.loaded().config.trash_lifetime
  const facts = { story, records: await recordsOf(view), live, policies: view.policies(), wall, trashLifetime, content: requester.content }
  return {
    ...storyJson(facts),
    client: client ?? null,
    sasl_username: saslUsername ?? null,
    operations: operations.filter((one) => seesOperation(one, requester)).map((one) => operationJson(one, wall)),
    future: futureJson({ ...facts, notices: view.notices(), draw: view.draw, now: view.clock.now() }),
  }
}
