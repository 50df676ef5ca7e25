/**
 * Planted bugs in the code that keeps mail safe: intake, store, ownership, maildrop, notices, the SMTP client's view of success.
 * Each is found by the test file named here.
 */
import type { Mutant } from './mutants.ts'

export interface SafetyMutant extends Mutant {
  /** File of the test that fails with the bug. */
  readonly test: string
}

const safety = (name: string, file: string, replace: string, by: string, test: string): SafetyMutant => ({
  name,
  file: `src/${file}`,
  replace,
  by,
  test: `test/${test}.test.ts`,
})

const RECEIVER = 'queue/intake/message-receiver.ts'
const WRITER = 'queue/intake/maildrop-writer.ts'
const READER = 'queue/intake/maildrop-reader.ts'
const MAILDROP = 'queue/intake/maildrop.ts'
const BATCHES = 'store/sqlite/core/batches.ts'
const DATABASE = 'store/sqlite/file/database.ts'
const MIGRATIONS = 'store/sqlite/file/migrations.ts'
const ENQUEUE = 'store/sqlite/writing/enqueue.ts'
const OUTCOMES = 'store/sqlite/writing/outcomes.ts'
const NOTICES_DUE = 'store/sqlite/writing/notices-due.ts'
const RECOVERY = 'store/sqlite/core/recovery.ts'

const SUBMISSION = 'cli/postfix/submission-durability'
const MAILDROP_TEST = 'queue/intake/maildrop'
const CONNECTION = 'smtpd/connection'
const INTAKE = 'queue/intake/intake'
const DURABILITY = 'store/sqlite/durability'
const SYNC_ORDER = 'store/sqlite/durability/sync-order.ts'
const ORDER = 'store/sqlite/durability/sync-order'
const POWER_CUT = 'store/sqlite/power-cut-replay'
const SLOW_SYNCS = 'process/slow-syncs'
const CONFORMANCE = 'conformance/on-disk'
const OPENING = 'store/sqlite/opening'
const HOSTILE = 'delivery/smtp/hostile-servers'
const IO_FAULTS = 'process/io-faults'
const HOP = 'delivery/smtp/hop-policy.ts'
const TLS_POLICY = 'delivery/tls/tls-policy.ts'
const STS_DECISION = 'delivery/sts/sts-decision.ts'
const STS = 'stories/mta-sts'
const DANE = 'stories/dane'
const REPORTS = 'stories/tls-reports-of-a-day'

export const SAFETY_MUTANTS: readonly SafetyMutant[] = [
  // events: a position past what is not committed yet
  safety(
    'events are read in the order of their writing',
    'store/postgres/writing/outbox-queries.ts',
    'select seq, at, type, data from event where seq > $1 order by seq limit $2',
    'select id as seq, at, type, data from event where id > $1 order by id limit $2',
    'store/postgres/outbox',
  ),
  safety(
    'a failing call drops the events of the calls before it',
    BATCHES,
    `    this.#core.events.write()\n    this.#db.exec('savepoint one')`,
    `    this.#db.exec('savepoint one')`,
    CONFORMANCE,
  ),
  safety(
    'events of a transaction that was rolled back are written with the next one',
    BATCHES,
    '      this.#core.events.rolledBack()\n      throw error',
    '      throw error',
    'store/sqlite/rolled-back-events',
  ),
  safety(
    'a message whose checksum is wrong is moved to another queue',
    'store/sqlite/moving/moves.ts',
    'if (!isSoundMessage(row) || !recipients.every(isSoundRecipient)) return null',
    'if (!recipients.every(isSoundRecipient)) return null',
    'store/sqlite/checksums',
  ),
  safety(
    'a link that replaced an entry of the maildrop is followed',
    READER,
    'constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK',
    'constants.O_RDONLY | constants.O_NONBLOCK',
    'queue/intake/maildrop-reader',
  ),
  safety('the folder of the queue is not synced before the first commit', DATABASE, '      sync(directory)\n', '', IO_FAULTS),
  safety(
    'a trigger in a backup or queue is overlooked',
    'store/sqlite/file/schema-differences.ts',
    'if (differences !== null) throw new SchemaChanged(path, differences)',
    'if (differences === undefined) throw new SchemaChanged(path, String(differences))',
    'store/sqlite/foreign-schema',
  ),
  // intake: a reply before the commit, or without one
  safety(
    '250 before the commit',
    'queue/intake/intake.ts',
    '      await store.enqueue(prepared)',
    '      void store.enqueue(prepared)',
    INTAKE,
  ),
  safety(
    '250 after a failed commit',
    RECEIVER,
    "      this.#failed(error)\n      return error instanceof OutcomeUnknown ? { kind: 'unknown' } : undefined",
    '      this.#deps.report(String(error), error)\n      return this.#queued',
    CONNECTION,
  ),
  safety(
    'mail is accepted while the store cannot commit',
    'queue/intake/intake.ts',
    'if (storeHealth.unavailable) return WRITE_ERROR',
    'if (storeHealth.unavailable && size < 0) return WRITE_ERROR',
    INTAKE,
  ),
  safety(
    'staged content of a client that disconnected is kept',
    'queue/intake/staged-content.ts',
    '    await this.#deps.intake.unstage(this.#deps.id)',
    '    await Promise.resolve()',
    CONNECTION,
  ),

  // submission through the maildrop
  safety(
    'sendmail ends before its file is synced',
    'cli/postfix/submit.ts',
    'return await submitToMaildrop(shell.files, queueDirectory, { newName, envelope, content })',
    'return void submitToMaildrop(shell.files, queueDirectory, { newName, envelope, content }), []',
    SUBMISSION,
  ),
  safety(
    'the mode of a complete file is not synced',
    WRITER,
    '      await file.chmod(COMPLETE)\n      await file.sync()\n',
    '      await file.chmod(COMPLETE)\n',
    SUBMISSION,
  ),
  safety(
    'a file is marked complete before its content is synced',
    WRITER,
    'content]))\n      await file.sync()\n',
    'content]))\n',
    SUBMISSION,
  ),
  safety('the folder of a submission is not synced', WRITER, '      await folder.sync()\n', '', SUBMISSION),
  safety(
    'a file is removed before its message is committed',
    MAILDROP,
    '      if (!queued.has(key) && !(await this.#takeMessage',
    '      await this.#remove(name, file)\n      if (!queued.has(key) && !(await this.#takeMessage',
    MAILDROP_TEST,
  ),
  safety('a file that is in the queue is queued again', MAILDROP, 'if (!queued.has(key) && !(await', 'if (!(await', MAILDROP_TEST),
  safety(
    'the key of a file is not committed with its message',
    ENQUEUE,
    '    if (maildropFile !== undefined) this.#insertMaildropFile.run(maildropFile)\n',
    '',
    CONFORMANCE,
  ),
  safety(
    'a file that is not complete is read',
    READER,
    "if ((Number(mode) & 0o777) !== COMPLETE) return 'it is not complete'",
    "if (Number(mode) === -COMPLETE) return 'it is not complete'",
    MAILDROP_TEST,
  ),
  safety(
    'a file of another length than stated is taken',
    READER,
    'if (stats.size !== BigInt(head.start)',
    'if (stats.size < BigInt(head.start)',
    MAILDROP_TEST,
  ),
  safety(
    'another file with the same name is removed',
    MAILDROP,
    'if (file.isAt(await files.lstat(path, { bigint: true }))) await files.unlink(path)',
    'await files.unlink(path)',
    MAILDROP_TEST,
  ),
  safety('keys are forgotten before the removal is durable', MAILDROP, '      await folder.sync()\n', '', MAILDROP_TEST),

  // commits
  safety('commits are not synced', DATABASE, "  db.pragma('synchronous = full')\n", "  db.pragma('synchronous = normal')\n", DURABILITY),
  safety(
    'a queue whose commits are not synced is used',
    DATABASE,
    "if (synchronous === 2 && journal === 'wal') return",
    "if (journal === 'wal' || synchronous === 2) return",
    DURABILITY,
  ),
  safety('a change is acknowledged when it is written', SYNC_ORDER, 'return this.#durable\n', 'return this.#written\n', POWER_CUT),
  safety(
    'a sync counts for what is written after it has begun',
    SYNC_ORDER,
    'this.#synced = Math.max(this.#synced, included)',
    'this.#synced = Math.max(this.#written, included)',
    POWER_CUT,
  ),
  safety(
    'a change is not counted as one',
    BATCHES,
    'const changed = changes !== this.#seenChanges',
    'const changed = changes < this.#seenChanges',
    POWER_CUT,
  ),
  safety(
    'answers are acknowledged out of order',
    'store/sqlite/clients/worker-store.ts',
    'const done = this.#written.splice(0, count)',
    'const done = this.#written.splice(-count)',
    SLOW_SYNCS,
  ),
  safety(
    'a sync that succeeds after a failed one is believed',
    SYNC_ORDER,
    'if (!this.#hasFailed) this.#durable =',
    'this.#durable =',
    ORDER,
  ),
  safety(
    'commits after those that were synced are taken for damage',
    'store/sqlite/file/write-ahead-log.ts',
    "if (synced !== null) return bad < synced ? 'damaged' : 'incomplete'\n",
    '',
    'store/sqlite/durability/synced-mark',
  ),
  safety(
    'outcomes that are not durable have no limit',
    'queue/scheduler/destination.ts',
    'if (this.hosts.waitsFor.length > 0 || this.#settling >=',
    'if (this.hosts.waitsFor.length > 0 || -this.#settling >=',
    'stories/unsettled-outcomes',
  ),
  safety(
    'the store writes on after an I/O error',
    BATCHES,
    '      this.#broken ??= new StoreFailed(`I/O error',
    '      void new StoreFailed(`I/O error',
    IO_FAULTS,
  ),
  safety(
    'a failed checkpoint is ignored',
    'store/sqlite/file/checkpoints.ts',
    "    if (error.code === 'SQLITE_FULL') return UNMOVED\n",
    "    if (error.code !== '') return UNMOVED\n",
    IO_FAULTS,
  ),
  safety(
    'a failing call rolls back the others of its batch',
    BATCHES,
    "    if (scope === 'store') return calls.map(() => failed(this.#broken ?? error))\n    if (scope === 'full'",
    "    if (scope !== 'full') return calls.map(() => failed(this.#broken ?? error))\n    if (scope === 'full'",
    CONFORMANCE,
  ),
  safety(
    'a failing call is committed in part',
    BATCHES,
    "      this.#db.exec('rollback to one; release one')",
    "      this.#db.exec('release one')",
    CONFORMANCE,
  ),
  safety(
    'a removed queue file is not noticed',
    'store/sqlite/file/file-guard.ts',
    'if (found === identity) continue',
    'if (found === identity || found === null) continue',
    'process/removed-queue',
  ),
  safety(
    'damaged content is delivered',
    ENQUEUE,
    'if (crc32(row.data) !== row.crc) throw',
    'if (row.data.length < 0) throw',
    'store/sqlite/writing/quarantine',
  ),

  // ownership and upgrades
  safety('two owners', 'store/folder/owner-lock.ts', "const LOCK = 'begin exclusive'", "const LOCK = 'begin'", OPENING),
  safety(
    'an older program opens a newer queue',
    MIGRATIONS,
    'if (version > known) throw new QueueTooNew',
    'if (version < 0) throw new QueueTooNew',
    OPENING,
  ),
  safety(
    'a database of another program is migrated',
    MIGRATIONS,
    'if (identity !== APPLICATION_ID) throw',
    'if (identity === undefined) throw',
    OPENING,
  ),
  safety(
    'an upgrade is not one transaction',
    MIGRATIONS,
    'const apply = db.transaction(() => {',
    'const apply = ((run: () => void) => ({ immediate: run }))(() => {',
    'store/sqlite/migrations',
  ),

  // recovery after a crash
  safety('leases of the last owner are kept', RECOVERY, '    changeRows(() => unlease.run(id))\n', '    void unlease\n', CONFORMANCE),
  safety(
    'mail that crashes the daemon is tried for ever',
    RECOVERY,
    "convictionOf(deliveryStarts, 'daemon')",
    "convictionOf(deliveryStarts / 1_000, 'daemon')",
    CONFORMANCE,
  ),
  safety('ids are used again', RECOVERY, 'if (highest > reserved)', 'if (highest < 0 && highest > reserved)', 'store/sqlite/open-store'),
  safety('starts of deliveries are not counted', ENQUEUE, "state === 'leased' ? 1 : 0", "state === 'leased' ? 0 : 0", CONFORMANCE),

  // outcomes and notices
  safety(
    'an outcome of a former owner is recorded',
    OUTCOMES,
    'if (row === undefined || settlement.owner !== this.#owner) return',
    'if (row === undefined) return',
    CONFORMANCE,
  ),
  safety('an outcome is recorded twice', OUTCOMES, "return one?.state === 'leased'", 'return one !== undefined', CONFORMANCE),
  safety(
    'a message leaves the queue with a notice due',
    'store/decisions/settlement.ts',
    'isFinal(one) && one.noticeDue === undefined',
    'isFinal(one)',
    CONFORMANCE,
  ),
  safety(
    'a message leaves the queue with its first recipient',
    OUTCOMES,
    'settled.every(isOver) && (sole !== undefined || !this.#isKeptByOthers(message, ids))',
    'settled.every(isOver)',
    CONFORMANCE,
  ),
  safety('an outcome ends a hold', OUTCOMES, 'stateAt(placement),', "'waiting',", CONFORMANCE),
  safety(
    'a notice is sent twice',
    NOTICES_DUE,
    'if (row === undefined || !this.#isCurrent(report, row)) return',
    'if (row === undefined) return',
    CONFORMANCE,
  ),
  safety(
    'a notice stays due after it is queued',
    NOTICES_DUE,
    'this.#pay.run(recipient, noticeDue)',
    'void [recipient, noticeDue]',
    CONFORMANCE,
  ),
  safety(
    'a notice is not queued',
    NOTICES_DUE,
    'for (const notice of notices) this.#deps.intake.enqueue(notice)',
    'for (const notice of notices) void notice',
    CONFORMANCE,
  ),
  safety(
    'an outcome is lost while the disk is full',
    'store/store-health.ts',
    '        if (this.#abandon.signal.aborted) throw error\n',
    '        if (this.#unavailable) throw error\n',
    'store/store-health',
  ),

  // the remote server's view
  safety(
    'content that cannot be read is ended with a dot',
    'delivery/smtp/mail-transaction.ts',
    "(RFC 5321 §4.1.1.4).\n    if (chunk.kind === 'unreadable') return this.#abort(chunk)\n",
    "(RFC 5321 §4.1.1.4).\n    if (chunk.kind === 'unreadable') chunk = { kind: 'chunk', bytes: Buffer.alloc(0), last: true }\n",
    HOSTILE,
  ),
  safety(
    'content that cannot be read is ended with LAST',
    'delivery/smtp/mail-transaction.ts',
    "(RFC 3030 §2).\n    if (chunk.kind === 'unreadable') return this.#abort(chunk)\n",
    "(RFC 3030 §2).\n    if (chunk.kind === 'unreadable') chunk = { kind: 'chunk', bytes: Buffer.alloc(0), last: true }\n",
    'delivery/smtp/chunking',
  ),
  safety(
    'an unreadable message is bounced',
    'delivery/smtp/mail-transaction.ts',
    "  if (first.kind === 'unreadable') return { ...transcript, unreadable: first }\n",
    "  if (first.kind === 'unreadable') return { ...transcript, failure: { kind: 'too-big', size: 1, limit: 0 } }\n",
    HOSTILE,
  ),
  safety(
    'a bare LF before the dot ends the content',
    'smtpd/stream/data-stream.ts',
    'const ends = this.#lenient || (withCr && this.#afterCrlf)',
    'const ends = this.#lenient || withCr',
    'smtpd/smuggling',
  ),

  // several nodes
  safety(
    'an owner settles what another one leases',
    'store/memory/held-mail.ts',
    'owner === this.#owner.id && this.#owner.leases(one)',
    "owner >= 0 && one.state === 'leased'",
    'conformance/conformance',
  ),
  safety(
    'a node that holds again does not resume',
    'store/membership/member.ts',
    '    this.#listener?.resumed()\n',
    '',
    'store/membership/member',
  ),
  safety(
    'a suspension at another node is not awaited',
    'queue/scheduler/live-destinations.ts',
    'await membership.recall({ messages: [], destination: name, rests: false })',
    'await membership.recall({ messages: [], destination: null, rests: false })',
    'queue/scheduler/destination-control',
  ),
  safety(
    'a suspension by another node has effect after it is saved again',
    'queue/scheduler/destination-control.ts',
    '    destination.suspend(suspension)\n    due.schedule(destination)\n    if',
    '    await this.#save(destination)\n    destination.suspend(suspension)\n    due.schedule(destination)\n    if',
    'queue/scheduler/destination-control',
  ),
  safety(
    'an order of an operator at another node is ignored',
    'queue/scheduler/destination-control.ts',
    'if (suspension !== null) await this.#suspended(name, suspension)\n    else',
    'if (suspension !== null) await Promise.resolve()\n    else',
    'queue/scheduler/shard-transfer',
  ),
  safety(
    'a shard is released before its deliveries have ended',
    'queue/scheduler/shard-transfer.ts',
    'while (leaving.some(isWaitedFor) &&',
    'while (leaving.length < 0 && leaving.some(isWaitedFor) &&',
    'queue/scheduler/shard-transfer',
  ),
  safety(
    'connections are opened without a lease',
    'delivery/smtp/session-opener.ts',
    'if (!this.#deps.holds()) return',
    'if (!this.#deps.holds() && this.#isLmtp) return',
    'delivery/smtp/node-lease',
  ),
  safety(
    'a fence without a lock',
    'store/postgres/session/node-queries.ts',
    'session = $2 and keys = $3 for share) fence',
    'session = $2 and keys = $3) fence',
    'store/postgres/node',
  ),
  safety(
    'a fence of one call without a lock',
    'store/postgres/session/node-queries.ts',
    'session = $2 for share) fence',
    'session = $2) fence',
    'store/postgres/node',
  ),
  safety(
    'deliveries go on under the limits of another provider',
    'delivery/smtp/attempt.ts',
    '!admits(providerOfHosts(provider, hosts))',
    'hosts.length < 0 && !admits(providerOfHosts(provider, hosts))',
    'delivery/smtp/provider-admission',
  ),
  safety(
    'one delivery too many at a provider',
    'queue/scheduler/provider.ts',
    'this.#running.all < concurrency',
    'this.#running.all <= concurrency',
    'stories/providers',
  ),
  safety('a slot of a provider is lost', 'queue/scheduler/destination-table.ts', '    provider?.end(job)\n', '', 'stories/providers'),
  safety(
    'one destination holds the slots of its provider',
    'queue/scheduler/destination-table.ts',
    'if (blocked !== undefined && blocked.size > 0) this.#block(flow, blocked)\n    else this.#turns',
    'this.#turns',
    'stories/providers',
  ),
  safety(
    'a restart forgets the providers',
    'queue/scheduler/provider-control.ts',
    'if (fillsDirectory) directory.replace(await store.records.providerMembers.all())',
    'if (fillsDirectory) directory.replace([])',
    'stories/providers',
  ),
  safety(
    'a silent host takes every slot',
    'queue/scheduler/hosts/address-limits.ts',
    'const hasRoom = connecting < limit',
    'const hasRoom = connecting < 5 * limit',
    'stories/silent-host',
  ),
  safety(
    'each domain of a silent host is probed for itself',
    'queue/scheduler/destination.ts',
    'this.access.probing || this.hosts.isProbedByOther ? null',
    'this.access.probing ? null',
    'stories/silent-host',
  ),
  safety(
    'the domains of a silent host do not learn of its answer',
    'queue/scheduler/host-connections.ts',
    'for (const destination of hosts.membersAt(address))',
    'for (const destination of hosts.membersAt(address).slice(0, 0))',
    'stories/silent-host',
  ),
  safety(
    'reply rules match texts of deferd',
    'queue/scheduler/provider-control.ts',
    'outcomes.values()].flatMap(({ outcome, status: { reply } }) =>',
    'outcomes.values()].flatMap(({ outcome, status: { reason: reply } }) =>',
    'stories/providers',
  ),
  safety(
    'the effect of a rule never ends',
    'queue/scheduler/provider-control.ts',
    '({ until, rule }) => until > now && rules.has(rule)',
    '({ until, rule }) => until > 0 && rules.has(rule)',
    'stories/providers',
  ),
  safety(
    'a rule without regard to its count',
    'queue/scheduler/providers/reply-rules.ts',
    'if (matches.length < count) this',
    'if (matches.length < 1) this',
    'stories/providers',
  ),
  safety(
    'a destination joins a provider without its mail',
    'store/postgres/provider-members.ts',
    'int2s([...from])',
    'int2s([...from].slice(1))',
    'conformance/postgres',
  ),
  safety(
    'the mail that is left in a former shard is forgotten',
    'store/postgres/provider-mail.ts',
    '[from, destination])).length === 0)',
    '[from, destination])).length >= 0)',
    'store/postgres/provider-members',
  ),
  safety(
    'providers of a shared queue are read without their version',
    'queue/scheduler/provider-control.ts',
    'if (fillsDirectory) directory.replace(',
    'directory.replace(',
    'queue/scheduler/shard-transfer',
  ),
  safety(
    'a node that has missed a change of the providers goes on',
    'store/postgres/session/node-queries.ts',
    'and keys = $3 for share',
    'and keys <= $3 + 1000000 for share',
    'conformance/postgres',
  ),
  // TLS: mail in clear, or to a host that the domain has not named
  safety(
    'a policy does not choose the exchangers',
    HOP,
    'if (!enforced || namesExchanger(',
    'if (!enforced || policy.mx.length > 0 || namesExchanger(',
    STS,
  ),
  safety('certificates under a policy are not verified', TLS_POLICY, 'rejectUnauthorized: enforced,', 'rejectUnauthorized: false,', STS),
  safety('a policy lets mail go in clear', TLS_POLICY, 'return { level, required: enforced,', 'return { level, required: false,', STS),
  safety(
    'a policy ends when its record cannot be looked up',
    STS_DECISION,
    'kept === undefined || isExpired(kept, now) ? undefined : kept',
    "kept === undefined || announced.kind !== 'id' || isExpired(kept, now) ? undefined : kept",
    STS,
  ),
  safety('a policy applies after its end', STS_DECISION, 'expiresAt <= now', 'expiresAt <= now - 400 * DAY', STS),
  safety(
    'a wildcard stands for several labels',
    'delivery/sts/sts-record.ts',
    "name.slice(name.indexOf('.') + 1) === pattern.slice(2)",
    'name.endsWith(pattern.slice(1))',
    'delivery/sts/sts-record',
  ),
  safety(
    'a failed look-up of TLSA records is their absence',
    'delivery/dane/dane-decision.ts',
    "    case 'failed':\n      return { kind: 'failed' }",
    "    case 'failed':\n      return { kind: 'none' }",
    DANE,
  ),
  safety(
    'the weaker digest counts too',
    'delivery/dane/tlsa.ts',
    'strongest !== undefined && MATCHING_TYPES[strongest] === matchingType',
    'strongest !== undefined',
    'delivery/dane/tlsa',
  ),
  safety(
    'a connection is kept under other TLSA records',
    'delivery/smtp/attempt.ts',
    '`${context.key} ${relayName(host)} ${found.terms.digest}`',
    '`${context.key} ${relayName(host)}`',
    DANE,
  ),
  safety(
    'a host without TLS gets mail in spite of TLSA records',
    TLS_POLICY,
    'const common = { level, required: true,',
    'const common = { level, required: false,',
    DANE,
  ),
  // reports about TLS
  safety(
    'reports are counted in reports',
    'delivery/smtp/session-opener.ts',
    'tlsEnded === undefined || this.#isOptional ||',
    'tlsEnded === undefined ||',
    REPORTS,
  ),
  safety(
    'a report waits for the TLS that it reports',
    'delivery/smtp/session-opener.ts',
    "this.#isOptional ? 'no' : settings.smtp_tls_mta_sts",
    'settings.smtp_tls_mta_sts',
    REPORTS,
  ),
  safety('a report is sent unsigned', 'relay/report-entry.ts', '!/^DKIM-Signature:/i.test(signatures)', '!/^/i.test(signatures)', REPORTS),
  safety(
    'two nodes send one report',
    'store/records/tls-report.ts',
    'ended === null && claimedUntil <= at,',
    'ended === null && claimedUntil <= at + 86_400_000,',
    'tls-reports/tls-reports',
  ),
  safety(
    'a repeated call loses counts',
    'store/records/record-table.ts',
    '`greatest(kept.${column(name)}, excluded.${column(name)})`',
    '`excluded.${column(name)}`',
    CONFORMANCE,
  ),
  safety(
    'a dialogue goes on with mail for another destination',
    'delivery/smtp/attempt.ts',
    'recorder?.facts.destination === this.#request.destination',
    "recorder !== null && recorder.facts.destination !== ''",
    'delivery/smtp/reused-connections',
  ),
  // the check of a domain
  safety(
    'a check sends mail',
    'delivery/smtp/attempt.ts',
    'if (rehearsal === undefined) return void',
    'if (rehearsal === undefined || policy.tlsOptional) return void',
    'domain-check/domain-check',
  ),
]
