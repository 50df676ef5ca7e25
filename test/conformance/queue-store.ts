/**
 * Contract of every QueueStore, independent of the engine. A new engine must pass this suite.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe } from 'vitest'
import { auditing, operationsAcrossRestarts } from './audit.ts'
import { classesOfMail } from './classes.ts'
import { dialogues } from './dialogues.ts'
import { domainChecks } from './domain-checks.ts'
import { quotaCounts } from './quota-counts.ts'
import { suppressionList } from './suppression-list.ts'
import { scheduleRuns } from './schedule-runs.ts'
import { refreshTokens, refreshTokensAcrossRestarts } from './shared-grants.ts'
import { tlsReporting } from './tls-reports.ts'
import { departedMail } from './departed-mail.ts'
import { comingIn } from './enqueue.ts'
import { timesOfMessages } from './times.ts'
import { newestFirst } from './newest-first.ts'
import { noticesDue } from './notices-due.ts'
import { foundMessages } from './found-messages.ts'
import { leases } from './leases.ts'
import { looking } from './reader.ts'
import type { Open, Subject } from './mail.ts'
import { movable, movesAcrossRestarts } from './moves.ts'
import { operators } from './operations.ts'
import { outbox, outboxAcrossRestarts } from './outbox.ts'
import { outcomes } from './settlements.ts'
import { restarts } from './restarts.ts'
import { searches } from './searches.ts'
import { shareCounting, sharesAcrossRestarts } from './share-counts.ts'
import { withTallyChecked } from './tally.ts'
import { series } from './series.ts'
import { traffic } from './traffic.ts'
import { twoOwners } from './two-owners.ts'

export interface Traits {
  /** True when the queue is kept after its owner has ended. */
  readonly survivesCrashes: boolean
  /** True when several nodes share the queue. A crash is then a takeover by a new node. */
  readonly shared?: boolean | undefined
  /** True when messages can move to and from the queue. */
  readonly moves?: boolean | undefined
  /** True when other engines show the rest: the same statements on disk, and the same adapter. */
  readonly restartsOnly?: boolean | undefined
}

export function describeQueueStore(
  name: string,
  open: Open,
  { survivesCrashes, shared = false, moves = false, restartsOnly = false }: Traits,
): void {
  describe(name, () => {
    let current: Subject | undefined
    const subject = (): Subject => {
      if (current === undefined) throw new Error('no store is open')
      return current
    }
    beforeEach(async () => {
      current = withTallyChecked(await open())
    })
    afterEach(() => subject().done())

    if (survivesCrashes) describe('restarts', () => restarts(subject, (next) => (current = next), shared))
    if (survivesCrashes) describe('operations and restarts', () => operationsAcrossRestarts(subject, (next) => (current = next)))
    if (moves && survivesCrashes) describe('moves and restarts', () => movesAcrossRestarts(subject, (next) => (current = next)))
    if (survivesCrashes) describe('events and restarts', () => outboxAcrossRestarts(subject, (next) => (current = next)))
    if (survivesCrashes) describe('refresh tokens and restarts', () => refreshTokensAcrossRestarts(subject, (next) => (current = next)))
    if (survivesCrashes) describe('counts of shares and restarts', () => sharesAcrossRestarts(subject, (next) => (current = next)))
    if (restartsOnly) return
    describe('counts of shares', () => shareCounting(subject))
    describe('events', () => outbox(subject))
    describe('enqueue', () => comingIn(subject))
    describe('times of messages', () => timesOfMessages(subject))
    describe('classes of mail', () => classesOfMail(subject))
    describe('leases', () => leases(subject))
    describe('settlements', () => outcomes(subject))
    describe('notices due', () => noticesDue(subject))
    describe('operations', () => operators(subject))
    describe('audit log', () => auditing(subject))
    describe('mail that has left', () => departedMail(subject))
    describe('reports about TLS', () => tlsReporting(subject))
    describe('refresh tokens', () => refreshTokens(subject))
    describe('suppression list', () => suppressionList(subject))
    describe('quota counts', () => quotaCounts(subject))
    describe('runs of schedules', () => scheduleRuns(subject))
    describe('checks of domains', () => domainChecks(subject))
    describe('dialogues', () => dialogues(subject))
    describe('traffic', () => traffic(subject))
    describe('series', () => series(subject))
    describe('searches', () => searches(subject))
    describe('found messages', () => foundMessages(subject))
    describe('reader', () => looking(subject))
    if (moves) describe('moves', () => movable(subject))
    if (shared) describe('two owners', () => twoOwners(subject))
  })
  if (!restartsOnly) describe(name, () => describeSearchesOfOneQueue(open))
}

/** Tests that change nothing. They share a queue, because each of them needs one with many messages. */
function describeSearchesOfOneQueue(open: Open): void {
  let subject: Subject
  beforeAll(async () => {
    subject = withTallyChecked(await open())
  })
  afterAll(() => subject.done())

  describe('newest first', () => newestFirst(() => subject))
}
