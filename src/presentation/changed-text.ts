/** The number of things that an action of the audit log has changed, with its unit. */
import { ERASE, OPERATIONS, RESEND } from '../queue/operation-request.ts'
import type { AuditEntry } from '../store/records/audit-log.ts'
import { plural } from './text.ts'

type Unit = readonly [one: string, several?: string]

const MESSAGE: Unit = ['message']
const ENTRY: Unit = ['entry', 'entries']
const NODE: Unit = ['node']

/** Units by the action or its first word. */
const UNITS: Readonly<Record<string, Unit>> = {
  ...Object.fromEntries([...OPERATIONS, ERASE, RESEND].map((name) => [name, MESSAGE])),
  suspend: ['destination'],
  resume: ['destination'],
  // Actions of reply rules.
  rate: ['provider'],
  concurrency: ['provider'],
  access: ENTRY,
  suppression: ENTRY,
  'suppression-resume': ['sender domain'],
  quota: ['quota'],
  token: ['token'],
  webhook: ['webhook'],
  tls: ['policy', 'policies'],
  drain: NODE,
  undrain: NODE,
  forget: NODE,
}

const isOf = (words: string, kind: string): boolean => words.startsWith(`${kind} `)

/** `4 messages`, `1 destination`; `nothing` for an action that only reads. */
export function changedText({ action, arguments: words, changed }: Pick<AuditEntry, 'action' | 'arguments' | 'changed'>): string {
  const [first = ''] = action.split(/[ -]/, 1)
  const unit = UNITS[action] ?? UNITS[first] ?? ['change']
  if (changed === 0 && unit !== MESSAGE) return 'nothing'
  return unit[0] === 'destination' && isOf(words, 'provider') ? plural(changed, 'provider') : plural(changed, ...unit)
}
