/** Records of QueueStore that are not mail: audit log, tokens, access entries, TLS policies and reports, providers, and refresh tokens. */
import type { DestinationName } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { ClockRecord } from '../../system/queue-clock.ts'
import type { AccessEntry, AccessSubject } from '../access-entry.ts'
import type { AccessToken } from '../access-token.ts'
import type { AuditId, AuditRecord, NewOperation, OperationEnd } from '../audit-log.ts'
import type { ProviderRecord } from '../provider-state.ts'
import type { QueueStore } from '../queue-store.ts'
import type { SharedGrant } from '../../oauth/shared-grant.ts'
import type { StsNote, StsPolicy } from '../tls/sts-policy.ts'
import type { CountedResult, Day, ReportClaim, TlsResult } from '../tls/tls-report.ts'
import { beginOperation, endOperation, recordAction } from './held-operations.ts'
import { MemoryEvents } from './memory-events.ts'
import type { QueueOwner } from './queue-owner.ts'
import { accessId, addToken, membersOf, providersOf, type MemoryQueue } from './queue-state.ts'

export class MemoryRecords extends MemoryEvents {
  readonly #queue: MemoryQueue
  readonly #owner: QueueOwner

  constructor(queue: MemoryQueue, owner: QueueOwner) {
    super(queue, owner)
    this.#queue = queue
    this.#owner = owner
  }

  async saveClock(record: ClockRecord): Promise<void> {
    this.#queue.clock = record
  }

  async audit(record: AuditRecord): Promise<AuditId> {
    return recordAction(this.#queue, this.#owner.id, record)
  }

  async beginOperation(operation: NewOperation): Promise<AuditId> {
    return beginOperation(this.#queue, this.#owner.id, operation)
  }

  async endOperation(id: AuditId, end: OperationEnd): Promise<boolean> {
    return endOperation(this.#queue, id, end)
  }

  async addToken(token: AccessToken): Promise<boolean> {
    return addToken(this.#queue, token)
  }

  async removeToken(name: string): Promise<boolean> {
    return this.#queue.tokens.delete(name)
  }

  async setAccess(entry: AccessEntry): Promise<void> {
    const { accessEntries } = this.#queue
    for (const [key, { expiresAt }] of accessEntries) if (expiresAt !== null && expiresAt < entry.addedAt) accessEntries.delete(key)
    accessEntries.set(accessId(entry), entry)
  }

  async removeAccess(subject: AccessSubject, key: string): Promise<boolean> {
    return this.#queue.accessEntries.delete(accessId({ subject, key }))
  }

  async keepStsPolicy(policy: StsPolicy): Promise<void> {
    const { stsPolicies } = this.#queue
    const known = stsPolicies.get(policy.domain)
    if (known !== undefined && known.fetchedAt > policy.fetchedAt) return
    stsPolicies.set(policy.domain, { ...policy, usedAt: Math.max(policy.usedAt, known?.usedAt ?? 0) })
  }

  async noteStsPolicy(note: StsNote): Promise<void> {
    const { stsPolicies } = this.#queue
    const known = stsPolicies.get(note.domain)
    if (known === undefined) return
    stsPolicies.set(note.domain, { ...known, ...note, usedAt: Math.max(known.usedAt, 'usedAt' in note ? note.usedAt : 0) })
  }

  async forgetStsPolicy(domain: string): Promise<boolean> {
    return this.#queue.stsPolicies.delete(domain)
  }

  async joinProvider(destination: DestinationName, provider: string | null): Promise<void> {
    if (provider === null) this.#queue.providerMembers.delete(destination)
    else this.#queue.providerMembers.set(destination, provider)
    // The mail may be that of another owner now.
    const waiting = [...this.#queue.messages.values()].flatMap(({ recipients }) =>
      recipients.filter((one) => one.destination === destination && one.state === 'waiting').map(({ dueAt }) => dueAt),
    )
    if (waiting.length > 0) this.#owner.due({ destination, dueAt: Math.min(...waiting), revive: false })
    const record = this.#queue.destinations.get(destination)
    if (record !== undefined) this.#owner.destination(record)
    this.#owner.joined()
  }

  async providerMembers() {
    return membersOf(this.#queue)
  }

  async saveProvider(record: ProviderRecord): Promise<void> {
    if (record.effects.length === 0) this.#queue.providers.delete(record.provider)
    else this.#queue.providers.set(record.provider, record)
    this.#owner.provider(record)
  }

  async providers() {
    return providersOf(this.#queue)
  }

  async keepTlsResults(source: string, results: readonly CountedResult[]): Promise<void> {
    this.#queue.tlsReports.keepTlsResults(source, results)
  }

  async tlsReportsDue(day: Day): Promise<readonly string[]> {
    return this.#queue.tlsReports.tlsReportsDue(day)
  }

  async claimTlsReport(claim: ReportClaim): Promise<boolean> {
    return this.#queue.tlsReports.claimTlsReport(claim)
  }

  async tlsResults(day: Day, domain: string): Promise<readonly TlsResult[]> {
    return this.#queue.tlsReports.tlsResults(day, domain)
  }

  async endTlsReport(report: Parameters<QueueStore['endTlsReport']>[0]): Promise<void> {
    this.#queue.tlsReports.endTlsReport(report)
  }

  async pruneTlsReports(before: Day): Promise<void> {
    this.#queue.tlsReports.pruneTlsReports(before)
  }

  async sharedGrant(name: string, user: string): Promise<SharedGrant | null> {
    return this.#queue.grants.sharedGrant(name, user)
  }

  async claimGrant(name: string, user: string, at: { readonly now: QueueTime; readonly until: QueueTime }): Promise<boolean> {
    return this.#queue.grants.claimGrant(name, user, at)
  }

  async replaceGrant(name: string, user: string, grant: SharedGrant): Promise<boolean> {
    return this.#queue.grants.replaceGrant(name, user, grant)
  }

  async releaseGrant(name: string, user: string): Promise<void> {
    this.#queue.grants.releaseGrant(name, user)
  }

  async tokenUsed(name: string, hour: QueueTime): Promise<void> {
    const token = this.#queue.tokens.get(name)
    if (token !== undefined) this.#queue.tokens.set(name, { ...token, lastUsedAt: Math.max(token.lastUsedAt ?? 0, hour) })
  }
}
