/** The dialogue with a host to which an attempt of a message refers. */
import { Problem, type ProblemKind } from '../../http/problem-details.ts'
import { maskControls } from '../../presentation/text.ts'
import { sessionJson, type SessionJson } from '../../resources/session-json.ts'
import { messageDetails } from '../messages.ts'
import type { QueueView, Visible } from '../queue-view.ts'

export const UNKNOWN_SESSION: ProblemKind = {
  slug: 'unknown-session',
  status: 404,
  title: 'Unknown dialogue',
  about:
    'No attempt of the message that the token may see refers to a dialogue with this id, or it is deleted (`session_retention`, `session_transcript_limit`).',
}

/** Throws Problem for a message that the client may not see, and for a dialogue that is not kept. */
export async function messageSession(view: QueueView, queueId: string, id: string, visible: Visible): Promise<SessionJson> {
  const { history } = await messageDetails(view, queueId, visible)
  const isReferred = history.some(({ session }) => session === id)
  const found = isReferred ? await view.reader.records.sessions.of(id) : undefined
  if (found !== undefined) return sessionJson(found, view.clock.wall)
  throw new Problem(
    UNKNOWN_SESSION,
    isReferred ? SESSION_DELETED : `no attempt of ${maskControls(queueId)} has a dialogue ${maskControls(id)}`,
  )
}

export const SESSION_DELETED =
  'the dialogue is no longer kept: session_retention or session_transcript_limit was reached, or the message was moved from another queue'
