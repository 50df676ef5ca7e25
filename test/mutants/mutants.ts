/**
 * Bugs that are planted, one at a time, into a copy of the sources. The number of bugs that the simulation finds measures its value.
 * The product has no reference to them. Each is a text that occurs once in one file, and its replacement.
 */
export interface Mutant {
  readonly name: string
  readonly file: string
  readonly replace: string
  readonly by: string
}

const mutant = (name: string, file: string, replace: string, by: string): Mutant => ({ name, file: `src/${file}`, replace, by })

const LIFECYCLE = 'queue/scheduler/lifecycle.ts'
const DESTINATION = 'queue/scheduler/destination.ts'
const HEALTH = 'queue/scheduler/destination-health.ts'
const LEASES = 'store/memory/leases.ts'
const NOTICES_DUE = 'store/memory/notices-due.ts'
const RECIPIENT = 'store/memory/recipient-states.ts'
const OPERATING = 'store/memory/operate.ts'
const CHANGES = 'store/decisions/operation-changes.ts'
const SCHEDULER = 'queue/scheduler/scheduler.ts'
const DAEMON = 'bounce/mailer-daemon.ts'

export const MUTANTS: readonly Mutant[] = [
  // attempts begin after an operation has answered
  mutant(
    'an operation leaves claimed mail in memory',
    'queue/operation-rounds.ts',
    'let taken = await scheduler.takeBack(all, { rests: isAgain })',
    'let taken: TakenBack = { given: [], inTransfer: [] }',
  ),
  // events tell another story than the history
  mutant(
    'events outside their transaction',
    'queue/scheduler/settlement-writer.ts',
    'const complete = recorded === undefined && kept.keepUntil === undefined ? settlement : { ...settlement, ...kept, events: recorded }',
    'const complete = { ...settlement, ...kept }\n    if (recorded !== undefined) void store.outbox.recordEvents(recorded)',
  ),
  mutant(
    'an expiry without an attempt has no event',
    'outbox/event-recorder.ts',
    'this.#tell()\n    const events',
    'if (outcome.result === null) return undefined\n    const events',
  ),
  mutant('a message leaves without an event', OPERATING, '  queue.outbox.removed(message, leftAt)\n', ''),
  mutant(
    'a requeued message was never accepted',
    'queue/operation-rounds.ts',
    '? [operated, requeuedEvent(requeued, operation)] : [operated]',
    '? [operated] : [operated]',
  ),
  mutant(
    'the events of one recipient stand for all',
    'outbox/event-data.ts',
    'events.push(outcomeOf(outcome, recipient, settled))',
    'events.push(outcomeOf(outcome, recipients[0] ?? recipient, settled))',
  ),
  // events are sent in another order, under other ids, or not at all
  mutant(
    'a refused event blocks those behind it',
    'subscriptions/answer-decision.ts',
    "if (isRefusal(answer) && refusals >= REFUSALS_UNTIL_PARKED) return { kind: 'park' }",
    "if (isRefusal(answer) && refusals >= REFUSALS_UNTIL_PARKED ** 3) return { kind: 'park' }",
  ),
  mutant(
    'the id of an event changes with its tries',
    'subscriptions/event-sender.ts',
    'some.map((event) => this.#json(epoch, event)),',
    'some.map((event) => this.#json(epoch + progress.tries, event)),',
  ),
  mutant(
    'a failed event is passed over',
    'subscriptions/event-sender.ts',
    "if (next.kind === 'wait' || next.kind === 'disable') break",
    "if (next.kind === 'disable') break",
  ),
  mutant(
    'a parked event is forgotten',
    'subscriptions/event-sender.ts',
    'parked.push({ seq: last, tries, at: this.#deps.clock.now()',
    'parked.slice().push({ seq: last, tries, at: this.#deps.clock.now()',
  ),
  // mail is lost or delivered twice
  mutant('250 before the commit', 'queue/intake/intake.ts', '      await store.enqueue(prepared)', '      void store.enqueue(prepared)'),
  mutant('a lost recipient', 'queue/intake/intake.ts', 'recipients: routed.map(', 'recipients: routed.slice(0, 3).map('),
  mutant('leases outlive their owner', 'store/memory/recovery.ts', 'for (const one of left) one.state = stateAt(held.placement)', ''),
  mutant(
    'a restart forgets the step',
    'store/memory/recovery.ts',
    'for (const one of left) one.state =',
    'for (const one of left) one.steps = 0\n  for (const one of left) one.state =',
  ),
  mutant(
    'a message leaves with its first recipient',
    'store/memory/queue-state.ts',
    'recipients.some((one) => isLive(one) || one.noticeDue !== undefined)',
    'recipients.every((one) => isLive(one) || one.noticeDue !== undefined)',
  ),
  mutant(
    'the outcome is brought to nobody',
    'queue/scheduler/settlement-writer.ts',
    'const result = await storeHealth.retryUntilCommitted(() => store.settle(complete, written))',
    'const result = await storeHealth.retryUntilCommitted(async () => ({ removed: false, noticeDue: settlement.recipients.length < 0 }))',
  ),
  mutant(
    'a 4xx bounces',
    LIFECYCLE,
    "case 'deferred':\n",
    "case 'deferred':\n      if (recipient.attempts > 3) return final(request, recipient, { ...facts, state: 'bounced', last, attempts })\n",
  ),
  mutant(
    'a 5xx waits',
    LIFECYCLE,
    "return final(request, recipient, { ...facts, state: 'bounced', last, attempts })",
    "return { ...deferred(request, recipient, facts), recipient: recipient.id, state: 'waiting', attempts, last }",
  ),

  // the schedule
  mutant(
    'early expiry',
    LIFECYCLE,
    'if (facts.now >= recipient.expiresAt) return',
    'if (facts.now >= recipient.expiresAt - 60_000) return',
  ),
  mutant('no expiry', LIFECYCLE, 'if (facts.now >= recipient.expiresAt) return', 'if (facts.now >= recipient.expiresAt + 600_000) return'),
  mutant(
    'a wait that is not capped by the lifetime',
    LIFECYCLE,
    'return Math.min(facts.now + spread, recipient.expiresAt)',
    'return facts.now + spread',
  ),
  mutant('jitter below the wait', LIFECYCLE, '? jittered(wait, jitter, facts.draw(`jitter ${name}`)) : wait', '? wait / 2 : wait'),
  mutant(
    'a step burned by a flush',
    LIFECYCLE,
    'return { dueAt, steps: recipient.steps, noticeDue }',
    'return { dueAt, steps: recipient.steps + 1, noticeDue }',
  ),
  mutant(
    'a flush that moves the due time',
    LIFECYCLE,
    'recipient.dueAt > facts.now ? recipient.dueAt :',
    'recipient.dueAt > facts.now ? facts.now + 1 :',
  ),
  mutant('a refusal for congestion burns a step', LIFECYCLE, 'if (facts.returned) return', 'if (facts.returned && facts.now < 0) return'),
  mutant('attempts are not counted', LIFECYCLE, 'const attempts = recipient.attempts + 1', 'const attempts = recipient.attempts'),
  mutant(
    'mail is claimed before it is due',
    LEASES,
    'ofBand.filter((one) => one.dueAt <= now)',
    'ofBand.filter((one) => one.dueAt <= now + 5_000)',
  ),
  mutant(
    'mail is claimed late',
    'queue/scheduler/due-queue.ts',
    'const answer = await store.claimDue({ destination: destination.name, now, bands, recipientLimit })',
    'const answer = await store.claimDue({ destination: destination.name, now: now - 30_000, bands, recipientLimit })',
  ),

  // operators
  mutant(
    'held mail is tried',
    CHANGES,
    "[placed(held, 'hold'), { kind: 'park', recipients: allOf(held).filter(isLive) }]",
    "[placed(held, 'hold')]",
  ),
  mutant('released mail stays parked', CHANGES, "  { kind: 'unpark', recipients: allOf(held).filter(isLive) },\n", ''),
  mutant('an outcome ends a hold', RECIPIENT, 'one.state = stateAt(placement)', "one.state = 'waiting'"),
  mutant('requeued mail keeps its lifetime at zero', OPERATING, 'dueAt, expiresAt, leased', 'dueAt, expiresAt: now, leased'),
  mutant(
    'what an operator gave up is tried',
    SCHEDULER,
    'if (request.forcedExpire) this.#forcedExpiry.add(request)',
    'if (request.forcedExpire && activatedAt < 0) this.#forcedExpiry.add(request)',
  ),
  mutant(
    'a suspension is forgotten at a restart',
    HEALTH,
    'if (record.suspension !== null) return',
    "if (record.suspension?.by === '') return",
  ),

  // destinations
  mutant(
    'a forgotten window cut',
    'queue/scheduler/window/window.ts',
    'narrowed(by, policy) : cut(by, policy, facts), cohorts }',
    'by : cut(by, policy, facts), cohorts }',
  ),
  mutant(
    'a window that grows too fast',
    'queue/scheduler/window/postfix-window.ts',
    'success: window.success + step }',
    'success: window.success + 2 * step }',
  ),
  mutant('one more than the window', 'queue/scheduler/turns/destination-mail.ts', 'this.inFlight >= window', 'this.inFlight > window'),
  mutant(
    'never dead',
    'queue/scheduler/window/window.ts',
    "cohorts >= policy.failedCohortLimit - 1e-9) return 'dead'",
    "cohorts >= 1000 * policy.failedCohortLimit) return 'dead'",
  ),
  mutant(
    'a probe storm',
    HEALTH,
    'const interval = Math.min(access.interval * 2, settings.maximal_backoff_time)',
    'const interval = 1_000',
  ),
  mutant('probes come too early', DESTINATION, 'Math.max(this.access.until, nextClaimAt)', 'nextClaimAt'),
  mutant(
    'a dead destination is never probed',
    DESTINATION,
    'return this.access.probing || this.hosts',
    'return this.access.probing || this.mail.waitingJobs === 0 || this.hosts',
  ),
  mutant(
    'more deliveries than the process may make',
    'queue/scheduler/destination-table.ts',
    'if (this.#running.all >= this.#limits().deliveries)',
    'if (this.#running.all >= 2 * this.#limits().deliveries)',
  ),
  mutant(
    'a slot is never free again',
    SCHEDULER,
    '    this.#state.table.freeSlot(running, this.#state.clock.monotonic())\n',
    '    if (running.job.request.recipients.length < 3) this.#state.table.freeSlot(running, this.#state.clock.monotonic())\n',
  ),
  mutant(
    'the loop forgets to turn',
    SCHEDULER,
    '    this.#due.schedule(destination)\n    this.#due.admitNext()\n    this.dispatch()\n',
    '    this.#due.schedule(destination)\n    this.#due.admitNext()\n',
  ),
  mutant(
    'a pause is not kept',
    'queue/scheduler/rate-delays.ts',
    'if (delay === 0) return\n    destination',
    'if (delay >= 0) return\n    destination',
  ),

  // notices
  mutant(
    'a doubled notice',
    NOTICES_DUE,
    'for (const one of stillDue) delete one.noticeDue',
    "for (const one of stillDue) if (one.noticeDue !== 'failure') delete one.noticeDue",
  ),
  mutant(
    'a notice about a notice',
    'bounce/notice.ts',
    "    if (!reportsDoubleBounces(rules)) return []\n    return [toPostmaster(rules, 'doubleBounce', { kind: 'failure', recipients, returns: small ? 'full' : 'headers' })]",
    "    return [{ ...toPostmaster(rules, 'doubleBounce', { kind: 'failure', recipients, returns: 'headers' }), address: message.sender }]",
  ),
  mutant(
    'NOTIFY=NEVER is not heard',
    'bounce/notice.ts',
    "notify !== 'never' && notify.includes(what)",
    "notify === 'never' || notify.includes(what)",
  ),
  mutant(
    'a failure is not told',
    LIFECYCLE,
    "outcome: state === 'delivered' && reached?.dsnPassedOn !== true ? 'relayed' : state,",
    "outcome: state === 'expired' ? 'delivered' : state === 'delivered' && reached?.dsnPassedOn !== true ? 'relayed' : state,",
  ),
  mutant('debts are forgotten at a restart', DAEMON, '    this.#tasks.add(this.#recall())\n', ''),
  mutant(
    'a warning too early',
    'bounce/warning-times.ts',
    'return age === undefined ? null : releasedAt(message) + age',
    'return age === undefined ? null : releasedAt(message) + age / 4',
  ),
  mutant(
    'a warning is forgotten',
    LIFECYCLE,
    'return { dueAt: nextDue(request, recipient, steps, facts), steps, noticeDue }',
    'return { dueAt: nextDue(request, recipient, steps, facts), steps }',
  ),
  mutant(
    'one delivery too many at a provider',
    'queue/scheduler/provider.ts',
    'this.#running.all < concurrency',
    'this.#running.all <= concurrency',
  ),
]
