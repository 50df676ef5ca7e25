/** Adds and removes tokens, and records it in the audit log. */
import type { Actor } from '../store/records/audit-log.ts'
import { z } from 'zod'
import { CLIENT_ROLES } from '../http/requests/requester.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { Clock } from '../system/clock.ts'
import { recordedDuration } from '../system/duration.ts'

/** Restricted, because names appear in the log and in the audit log. */
const NAME = /^[\w.@+-]{1,64}$/

export const isTokenName = (name: string): boolean => NAME.test(name)

export const rightsShape = {
  name: z.string().regex(NAME, 'expected 1 to 64 letters, digits or any of ._@+-'),
  role: z.enum(CLIENT_ROLES),
  content: z.boolean(),
  /** Pattern of destinations; null for all. */
  destinations: z.string().min(1).max(1_000).nullable(),
  /** Time in ms after which the token expires; null for never. */
  duration: z.number().int().positive().nullable(),
}

/** A token to add, with the hash of its secret. */
export interface NewToken extends z.infer<z.ZodObject<typeof rightsShape>>, Actor {
  /** SHA-256, in hexadecimal digits. */
  readonly hash: string
}

/** There is no token of the name (EX_DATAERR). */
export class UnknownToken extends Error {
  override readonly name = 'UnknownToken'
  readonly exitCode = 65
}

/** There is a token of the name already (EX_DATAERR). */
export class TokenExists extends Error {
  override readonly name = 'TokenExists'
  readonly exitCode = 65
}

export interface TokenChangesDeps {
  readonly store: Pick<QueueStore, 'records'>
  readonly clock: Pick<Clock, 'now'>
}

/** Adds a token. Rejects with TokenExists when there is one of this name. */
export async function addToken(
  { name, role, content, destinations, duration, hash, ...actor }: NewToken,
  { store, clock }: TokenChangesDeps,
): Promise<void> {
  const now = clock.now()
  const expiresAt = duration === null ? null : now + duration
  const added = await store.records.tokens.add({
    name,
    role,
    content,
    destinations,
    hash,
    addedAt: now,
    addedBy: actor.who,
    expiresAt,
    lastUsedAt: null,
  })
  if (!added) throw new TokenExists(`there is a token ${name} already: remove it first, or choose another name`)
  await store.records.audit.add({
    at: now,
    ...actor,
    action: 'token add',
    arguments: rightsText({ name, role, content, destinations, duration }),
    changed: 1,
  })
}

/** Removes a token, which is refused from then on. Rejects with UnknownToken when there is none of this name. */
export async function removeToken(
  { name, ...actor }: Pick<NewToken, 'name' | keyof Actor>,
  { store, clock }: TokenChangesDeps,
): Promise<void> {
  if (!(await store.records.tokens.remove(name))) throw new UnknownToken(`there is no token ${name}: deferd token list shows all names`)
  await store.records.audit.add({ at: clock.now(), ...actor, action: 'token remove', arguments: name, changed: 1 })
}

/** Arguments of the command that adds a token. */
const rightsText = ({ name, role, content, destinations, duration }: Omit<NewToken, 'hash' | keyof Actor>): string =>
  [
    name,
    '--role',
    role,
    ...(content ? ['--content'] : []),
    ...(destinations === null ? [] : ['--destination', destinations]),
    ...(duration === null ? [] : ['--expires', recordedDuration(duration)]),
  ].join(' ')
