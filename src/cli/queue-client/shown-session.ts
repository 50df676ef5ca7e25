/** The dialogue of an attempt as `queue show --session` prints it, from the queue of this machine or from the API of a relay. */
import { maskControls } from '../../presentation/text.ts'
import { SESSION_DELETED } from '../../queries/messages/message-session.ts'
import type { MessageStoryJson } from '../../resources/message-story-json.ts'
import { sessionJson, type SessionJson } from '../../resources/session-json.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { QueueSource } from '../shell/shell.ts'
import { segment } from './api-connection.ts'
import { detailsOf } from './shown-message.ts'

/** The dialogue with an id, or that of the last attempt that has one. Throws CommandError (65) when there is none. */
export async function sessionFrom(source: QueueSource, message: string, session: string | true): Promise<SessionJson> {
  const { api } = source
  if (api !== null) {
    const story = await api.get<MessageStoryJson>(`/messages/${segment(message)}`)
    return await api.get<SessionJson>(`/messages/${segment(message)}/sessions/${segment(chosen(message, story.history, session))}`)
  }
  const { reader, clock } = source
  const { history } = await detailsOf(reader, message)
  const found = await reader.records.sessions.of(chosen(message, history, session))
  if (found === undefined) throw new CommandError(EX.data, SESSION_DELETED)
  return sessionJson(found, clock.wall)
}

function chosen(message: string, attempts: readonly { readonly session?: string | null | undefined }[], session: string | true): string {
  const ids = attempts.flatMap((attempt) => attempt.session ?? [])
  const id = session === true ? ids.at(-1) : ids.find((one) => one === session)
  if (id !== undefined) return id
  const why = ids.length === 0 ? 'no attempt has a dialogue (session_transcripts)' : `it has ${ids.join(', ')}`
  throw new CommandError(
    EX.data,
    `${maskControls(message)} has no ${session === true ? 'dialogue' : `dialogue ${maskControls(session)}`}: ${why}`,
  )
}
