/**
 * Bugs planted by hand, one at a time, into a copy of the sources: what the simulation is worth is shown by how many of
 * them it finds. The product itself knows nothing of them. Each is one text, found once in one file, and its replacement.
 */
export interface Mutant {
  readonly name: string
  readonly file: string
  readonly replace: string
  readonly by: string
}

const mutant = (name: string, file: string, replace: string, by: string): Mutant => ({ name, file: `src/${file}`, replace, by })

const LIFECYCLE = 'queue/lifecycle.ts'
const DESTINATION = 'queue/destination.ts'
const MEMORY = 'queue/memory/memory-store.ts'
const RECIPIENT = 'queue/memory/recipient.ts'
const OPERATING = 'queue/memory/operations.ts'
const SCHEDULER = 'queue/scheduler.ts'
const DAEMON = 'bounce/mailer-daemon.ts'

export const MUTANTS: readonly Mutant[] = [
  // mail is lost, or comes twice
  mutant('250 before the commit', 'queue/intake.ts', '      await store.enqueue(prepared)', '      void store.enqueue(prepared)'),
  mutant('a lost recipient', 'queue/intake.ts', 'recipients: routed.map(', 'recipients: routed.slice(0, 3).map('),
  mutant(
    'leases outlive their owner',
    'queue/memory/recovery.ts',
    "for (const one of left) one.state = held.placement === 'queued' ? 'waiting' : 'parked'",
    '',
  ),
  mutant(
    'a restart forgets the step',
    'queue/memory/recovery.ts',
    'for (const one of left) one.state =',
    'for (const one of left) one.steps = 0\n  for (const one of left) one.state =',
  ),
  mutant(
    'a message leaves with its first recipient',
    'queue/memory/held.ts',
    'recipients.some((one) => isLive(one) || one.debt !== undefined)',
    'recipients.every((one) => isLive(one) || one.debt !== undefined)',
  ),
  mutant(
    'the outcome is brought to nobody',
    'queue/settling.ts',
    'const result = await guard.insist(() => store.settle(settlement))',
    'const result = await guard.insist(async () => ({ removed: false, indebted: settlement.recipients.length < 0 }))',
  ),
  mutant(
    'a 4xx bounces',
    LIFECYCLE,
    "case 'deferred':\n",
    "case 'deferred':\n      if (recipient.attempts > 3) return final(request, recipient, 'bounced', last, { ...facts, attempts })\n",
  ),
  mutant(
    'a 5xx waits',
    LIFECYCLE,
    "return final(request, recipient, 'bounced', last, { ...facts, attempts })",
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
  mutant('jitter below the wait', LIFECYCLE, '? jittered(wait, facts.jitter, facts.draw(`jitter ${name}`)) : wait', '? wait / 2 : wait'),
  mutant(
    'a step burned by a flush',
    LIFECYCLE,
    'return { dueAt, steps: recipient.steps, debt }',
    'return { dueAt, steps: recipient.steps + 1, debt }',
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
    MEMORY,
    'there.filter((one) => one.dueAt <= now)',
    'there.filter((one) => one.dueAt <= now + 5_000)',
  ),
  mutant(
    'mail is claimed late',
    'queue/due-mail.ts',
    'const answer = await store.claimDue({ destination: destination.name, now, limit, recipientLimit })',
    'const answer = await store.claimDue({ destination: destination.name, now: now - 30_000, limit, recipientLimit })',
  ),

  // operators
  mutant(
    'held mail is tried',
    OPERATING,
    "return held.placement === 'queued' && move(held, 'hold')",
    "return held.placement === 'queued' && ((held.placement = 'hold'), true)",
  ),
  mutant(
    'released mail stays parked',
    OPERATING,
    "return (held.placement === 'hold' || held.placement === 'corrupt') && move(held, 'queued')",
    "return (held.placement === 'hold' || held.placement === 'corrupt') && ((held.placement = 'queued'), true)",
  ),
  mutant('an outcome ends a hold', RECIPIENT, "one.state = placement === 'queued' ? 'waiting' : 'parked'", "one.state = 'waiting'"),
  mutant(
    'requeued mail keeps its lifetime at zero',
    OPERATING,
    'const fresh = { dueAt: now, expiresAt,',
    'const fresh = { dueAt: now, expiresAt: now,',
  ),
  mutant(
    'what an operator gave up is tried',
    SCHEDULER,
    'if (request.forcedExpire) this.#givenUp.add(request)',
    'if (request.forcedExpire && activatedAt < 0) this.#givenUp.add(request)',
  ),
  mutant(
    'a suspension is forgotten at a restart',
    DESTINATION,
    'if (record.suspendedBy !== null) this.standing',
    "if (record.suspendedBy === '') this.standing",
  ),

  // destinations
  mutant('a forgotten window cut', 'queue/window.ts', 'narrowed(by, policy) : cut(by, facts), cohorts }', 'by : cut(by, facts), cohorts }'),
  mutant(
    'a window that grows too fast',
    'queue/postfix-window.ts',
    'success: window.success + step }',
    'success: window.success + 2 * step }',
  ),
  mutant('one more than the window', DESTINATION, 'this.inFlight < this.window', 'this.inFlight <= this.window'),
  mutant(
    'never dead',
    'queue/window.ts',
    "cohorts >= policy.failedCohortLimit - 1e-9) return 'dead'",
    "cohorts >= 1000 * policy.failedCohortLimit) return 'dead'",
  ),
  mutant(
    'a probe storm',
    DESTINATION,
    'const interval = Math.min(this.standing.interval * 2, this.settings.maximal_backoff_time)',
    'const interval = 1_000',
  ),
  mutant('probes come too early', DESTINATION, 'Math.max(this.standing.until, this.nextDueAt)', 'this.nextDueAt'),
  mutant(
    'a dead destination is never probed',
    DESTINATION,
    'return this.standing.probing ? null : Math.max',
    'return this.standing.probing || this.todo === 0 ? null : Math.max',
  ),
  mutant(
    'more deliveries than the process may make',
    'queue/active-queue.ts',
    'if (this.#running >= this.#limits().deliveries)',
    'if (this.#running >= 2 * this.#limits().deliveries)',
  ),
  mutant(
    'a slot is never free again',
    SCHEDULER,
    '    this.#active.finished(turn, this.#parts.clock.monotonic())\n',
    '    if (turn.job.request.recipients.length < 3) this.#active.finished(turn, this.#parts.clock.monotonic())\n',
  ),
  mutant(
    'the loop forgets to turn',
    SCHEDULER,
    '    this.#pauses.ended(turn)\n    this.#due.schedule(destination)\n    this.#due.letIn()\n    this.#turn()\n',
    '    this.#pauses.ended(turn)\n    this.#due.schedule(destination)\n    this.#due.letIn()\n',
  ),
  mutant(
    'a pause is not kept',
    'queue/pauses.ts',
    'if (pause > 0) this.#rest(destination, pause)',
    'if (pause < 0) this.#rest(destination, pause)',
  ),

  // notices
  mutant(
    'a doubled notice',
    MEMORY,
    'for (const one of standing) delete one.debt',
    "for (const one of standing) if (one.debt !== 'failure') delete one.debt",
  ),
  mutant(
    'a notice about a notice',
    'bounce/notice.ts',
    "    if (!hearsOfDoubleBounces(rules.classes)) return []\n    return [toPostmaster('failure', rules.postmaster.doubleBounce",
    "    return [toPostmaster('failure', message.sender",
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
    "outcome: state === 'delivered' && facts.dsnPassedOn !== true ? 'relayed' : state,",
    "outcome: state === 'expired' ? 'delivered' : state === 'delivered' && facts.dsnPassedOn !== true ? 'relayed' : state,",
  ),
  mutant('debts are forgotten at a restart', DAEMON, '    this.#track(this.#resume())\n', ''),
  mutant(
    'a warning too early',
    'bounce/notice.ts',
    'return age === undefined ? null : arrivedAt + age',
    'return age === undefined ? null : arrivedAt + age / 4',
  ),
  mutant(
    'a warning is forgotten',
    LIFECYCLE,
    'return { dueAt: nextDue(request, recipient, steps, facts), steps, debt }',
    'return { dueAt: nextDue(request, recipient, steps, facts), steps }',
  ),
]
