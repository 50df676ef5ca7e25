/**
 * The core of the store: all methods as synchronous functions over one connection. Each runs inside a transaction of its caller.
 */
import type { Database } from 'better-sqlite3'
import type { LeaseTerms, MessageId } from '../../mail/message.ts'
import { dispatch, type Answers, type Call, type Handlers, type Method } from '../methods.ts'
import { AuditRows } from './audit/audit-rows.ts'
import { RequestRows } from './audit/request-rows.ts'
import { AccessRows } from './audit/access-rows.ts'
import { GrantRows } from './audit/grant-rows.ts'
import { ProviderRows } from './audit/provider-rows.ts'
import { StsRows } from './audit/sts-rows.ts'
import { TlsReportRows } from './audit/tls-report-rows.ts'
import { TokenRows } from './audit/token-rows.ts'
import { Contents, Intake } from './enqueue.ts'
import { HistoryWriter } from './history.ts'
import { Housekeeping } from './housekeeping.ts'
import { Leases } from './leases.ts'
import { MessageShares } from './message-shares.ts'
import { EventRows } from './outbox/event-rows.ts'
import { SubscriptionRows } from './outbox/subscription-rows.ts'
import { Moves } from './moves.ts'
import { NoticesDue } from './notices-due.ts'
import { Operating } from './operate.ts'
import { Corrupt } from './quarantine.ts'
import { Requeueing } from './requeueing.ts'
import { Outcomes } from './settlements.ts'
import { TrafficRows } from './traffic-rows.ts'

export interface StoreCore {
  run<M extends Method>(call: Call<M>): Answers[M]
  readonly corrupt: Corrupt
  readonly housekeeping: Housekeeping
  readonly shares: MessageShares
  readonly traffic: TrafficRows
  readonly events: EventRows
}

/** Creates the methods and prepares all statements, once per connection. `freeSpace` returns the bytes for new mail. */
export function createStoreCore(db: Database, terms: LeaseTerms, freeSpace: () => number): StoreCore {
  const parts = openParts(db, terms)
  const { corrupt, housekeeping, shares, traffic, events } = parts
  const handlers = handlersOf(parts, freeSpace)
  const changed = (message: MessageId) => shares.changed(message)
  const run = <M extends Method>(call: Call<M>): Answers[M] => {
    const { mark } = traffic
    try {
      return dispatch(handlers, call, changed)
    } catch (error) {
      traffic.rewind(mark)
      events.rolledBack()
      throw error
    }
  }
  return { run, corrupt, housekeeping, shares, traffic, events }
}

function openParts(db: Database, terms: LeaseTerms) {
  const shares = new MessageShares(db)
  const changed = (message: MessageId) => shares.changed(message)
  const traffic = new TrafficRows(db)
  const events = new EventRows(db)
  const corrupt = new Corrupt(db, { changed, events })
  const departures = new HistoryWriter(db, events)
  const requests = new RequestRows(db)
  const intake = new Intake(db, { traffic, requests, events })
  const audit = new AuditRows(db, requests)
  const [tokens, access, subscriptions] = [new TokenRows(db), new AccessRows(db), new SubscriptionRows(db, events)]
  const grants = new GrantRows(db)
  const operating = new Operating(db, { departures, requeueing: new Requeueing(db, departures), traffic, audit, events })
  return {
    events,
    subscriptions,
    shares,
    traffic,
    corrupt,
    intake,
    operating,
    audit,
    tokens,
    access,
    sts: new StsRows(db),
    providers: new ProviderRows(db),
    tlsReports: new TlsReportRows(db),
    grants,
    housekeeping: new Housekeeping(db, { operating, traffic, audit, requests, events, changed }),
    contents: new Contents(db),
    leases: new Leases(db, corrupt, terms),
    outcomes: new Outcomes(db, { departures, traffic, events, owner: terms.owner }),
    noticesDue: new NoticesDue(db, { corrupt, departures, intake, events }),
    moves: new Moves(db, { intake, traffic, access, tokens, grants, subscriptions }),
  }
}

const handlersOf = (
  {
    shares,
    traffic,
    corrupt,
    intake,
    operating,
    audit,
    tokens,
    access,
    sts,
    providers,
    tlsReports,
    grants,
    housekeeping,
    contents,
    leases,
    outcomes,
    noticesDue,
    moves,
    events,
    subscriptions,
  }: ReturnType<typeof openParts>,
  freeSpace: () => number,
): Handlers => ({
  nextIds: (count) => housekeeping.nextIds(count),
  stage: (content, from, chunks) => intake.stage(content, from, chunks),
  unstage: (content) => intake.unstage(content),
  enqueue: (entry) => intake.enqueue(entry),
  maildropFiles: () => intake.maildropFiles(),
  forgetMaildropFiles: (files) => intake.forgetMaildropFiles(files),
  readChunk: (content, index) => contents.read(content, index),
  claimDue: (claim) => {
    events.passed(claim.now)
    return leases.claimDue(claim)
  },
  claimSuspect: (now) => {
    events.passed(now)
    return leases.claimSuspect(now)
  },
  claimExpired: (now, limit, except) => {
    events.passed(now)
    return leases.claimExpired(now, limit, except)
  },
  giveBack: (recipients, owner) => leases.giveBack(recipients, owner),
  settle: (settlement) => outcomes.settle(settlement),
  quarantine: (message, why) => corrupt.quarantine(message, why),
  messagesWithNoticesDue: (after, limit) => noticesDue.messagesWithNoticesDue(after, limit),
  noticesDueOf: (message) => noticesDue.noticesDueOf(message),
  claimWarnings: (now, limit) => {
    events.passed(now)
    return noticesDue.claimWarnings(now, limit)
  },
  postponeWarning: (message, warnAt) => noticesDue.postponeWarning(message, warnAt),
  markDelayNoticeDue: (message, recipients) => noticesDue.markDelayNoticeDue(message, recipients),
  report: (report) => noticesDue.report(report),
  destinationsDue: () => housekeeping.destinationsDue(),
  nextDeadlines: () => housekeeping.nextDeadlines(),
  destinations: () => housekeeping.destinations(),
  saveDestination: (record, happened) => housekeeping.saveDestination(record, happened),
  operate: (operations, round) => operating.operate(operations, round),
  move: (rerouted) => operating.move(rerouted),
  tally: (largest) => {
    const counted = shares.tally(largest)
    return counted === null ? null : { ...counted, traffic: traffic.total() }
  },
  subscribe: (subscription) => subscriptions.subscribe(subscription),
  unsubscribe: (name) => subscriptions.unsubscribe(name),
  changeSecrets: (name, secrets) => subscriptions.changeSecrets(name, secrets),
  configureSubscriptions: (entries, at) => subscriptions.configureSubscriptions(entries, at),
  subscriptions: () => subscriptions.subscriptions(),
  wantedTypes: () => events.wantedTypes(),
  // Events are numbered when they are written.
  numberEvents: () => false,
  pullEvents: (name, limit) => subscriptions.pullEvents(name, limit),
  saveProgress: (name, from, change) => subscriptions.saveProgress(name, from, change),
  parkedDue: (name, limit) => subscriptions.parkedDue(name, limit),
  settleParked: (name, seq, end) => subscriptions.settleParked(name, seq, end),
  replayEvents: (name, replay) => subscriptions.replayEvents(name, replay),
  recordEvents: (happened) => events.keep(happened),
  pruneEvents: (limits) => subscriptions.pruneEvents(limits),
  audit: (record) => audit.audit(record),
  beginOperation: (operation) => audit.beginOperation(operation),
  endOperation: (id, end) => audit.endOperation(id, end),
  addToken: (token) => tokens.addToken(token),
  removeToken: (name) => tokens.removeToken(name),
  tokenUsed: (name, hour) => tokens.tokenUsed(name, hour),
  setAccess: (entry) => access.setAccess(entry),
  removeAccess: (subject, key) => access.removeAccess(subject, key),
  keepStsPolicy: (policy) => sts.keepStsPolicy(policy),
  noteStsPolicy: (note) => sts.noteStsPolicy(note),
  forgetStsPolicy: (domain) => sts.forgetStsPolicy(domain),
  joinProvider: (destination, provider) => providers.joinProvider(destination, provider),
  providerMembers: () => providers.providerMembers(),
  saveProvider: (record) => providers.saveProvider(record),
  providers: () => providers.providers(),
  keepTlsResults: (source, results) => tlsReports.keepTlsResults(source, results),
  tlsReportsDue: (day) => tlsReports.tlsReportsDue(day),
  claimTlsReport: (claim) => tlsReports.claimTlsReport(claim),
  tlsResults: (day, domain) => tlsReports.tlsResults(day, domain),
  endTlsReport: (report) => tlsReports.endTlsReport(report),
  pruneTlsReports: (before) => tlsReports.pruneTlsReports(before),
  sharedGrant: (name, user) => grants.sharedGrant(name, user),
  claimGrant: (name, user, at) => grants.claimGrant(name, user, at),
  replaceGrant: (name, user, grant) => grants.replaceGrant(name, user, grant),
  releaseGrant: (name, user) => grants.releaseGrant(name, user),
  saveClock: (record) => housekeeping.saveClock(record),
  prune: (limits) => housekeeping.prune(limits),
  verify: (after) => housekeeping.verify(after),
  ping: () => housekeeping.ping(),
  freeSpace,
  moveState: () => moves.moveState(),
  // The queue has one owner at a time.
  claimMoves: () => undefined,
  beginMove: (selection) => moves.beginMove(selection),
  leaving: (limit) => moves.leaving(limit),
  finishMove: (finished, at, auditedAs) => moves.finishMove(finished, at, auditedAs),
  undoMove: (messages) => moves.undoMove(messages),
  historyAfter: (seq, limit) => moves.historyAfter(seq, limit),
  markMoved: (name) => moves.markMoved(name),
  keepIds: (source, through) => moves.keepIds(source, through),
  takeMoved: (source, arrivals, destinations) => moves.takeMoved(source, arrivals, destinations),
  originsOf: (source, origins) => moves.originsOf(source, origins),
  admitMoved: (source, limit, now) => moves.admitMoved(source, limit, now),
  takeRecords: (source, records) => moves.takeRecords(source, records),
  recordsTaken: (source) => moves.recordsTaken(source),
})
