/**
 * Parts of a relay that work on its queue: intake, scheduler, notices, limits, quotas, suppressions, reports. Each is made of ports and of parts
 * that were made before it. They outlive a reload, and read the rules in effect at each use.
 */
import { MailerDaemon } from '../bounce/mailer-daemon.ts'
import type { NoticeEntry } from '../bounce/notice-writer.ts'
import { SubmissionReturner } from '../bounce/rejected-submission.ts'
import { ProviderDirectory } from '../config/provider-directory.ts'
import type { ClassBands } from '../config/values/mail-classes.ts'
import type { DeliveryAgent } from '../delivery/delivery-agent.ts'
import { parseMailbox } from '../mail/mailbox-list.ts'
import { StoreTroubles } from '../outbox/store-troubles.ts'
import { Intake } from '../queue/intake/intake.ts'
import { LimitUpkeep } from '../queue/intake/limit-upkeep.ts'
import { ScheduledLimit } from '../queue/intake/scheduled-limit.ts'
import { QuotaUpkeep } from '../queue/quota-upkeep.ts'
import { ActiveQueue } from '../queue/scheduler/active-queue.ts'
import { DestinationTable } from '../queue/scheduler/destination-table.ts'
import { Scheduler } from '../queue/scheduler/scheduler.ts'
import type { SchedulerPorts } from '../queue/scheduler/scheduler-state.ts'
import { StoreHealth } from '../store/store-health.ts'
import { Suppressions } from '../suppression/suppressions.ts'
import { ReportSender } from '../tls-reports/report-sender.ts'
import { activeLimits } from './active-limits.ts'
import { ClassRegistry } from './class-registry.ts'
import { tlsReportSettings, type DeliveryParts } from './delivery-parts.ts'
import { noticeEntry } from './notice-entry.ts'
import { brakeMail, queueOperatorMail, type OperatorMail } from './operator-mail.ts'
import type { RelayDeps } from './relay-deps.ts'
import { queueReport } from './report-entry.ts'
import type { Rules } from './rules.ts'

export interface QueueParts {
  readonly mailerDaemon: MailerDaemon
  readonly limits: LimitUpkeep
  readonly scheduler: Scheduler
  readonly classes: ClassRegistry
  readonly quotas: QuotaUpkeep
  readonly intake: Intake
  /** Takes the mail of the relay itself. */
  readonly entry: NoticeEntry
  readonly suppressions: Suppressions
  readonly tlsReports: ReportSender
  readonly submissions: SubmissionReturner
}

/** Ports and parts of which the parts of the queue are made. */
interface QueueBase extends Omit<RelayDeps, 'membership'>, Pick<DeliveryParts, 'membership' | 'recorder' | 'contents'> {
  readonly rules: () => Rules
  /** Numbers of the classes. */
  readonly bands: ClassBands
  readonly directory: ProviderDirectory
  /** Delivers with the agent in effect. */
  readonly agent: DeliveryAgent
}

export function openQueueParts(base: QueueBase): QueueParts {
  const { store, clock, events, recorder, membership, rules, bands } = base
  const { isShared } = membership
  const storeHealth = watchStore(base)
  const limits = () => activeLimits(rules().config)
  const active = new ActiveQueue(limits)
  const table = new DestinationTable(active, limits, () => rules().policies)
  const mailerDaemon = new MailerDaemon({
    store,
    clock,
    events,
    recorder,
    storeHealth,
    settings: () => rules().notices,
    roundIsOpen: (message) => active.holds(message),
    closed: (destination) => table.isClosed(destination),
  })
  const limitUpkeep = new LimitUpkeep({ store, clock, events, recorder, isShared })
  const scheduler = openScheduler(base, mailerDaemon, { storeHealth, active, table, limits })
  const quotas = openQuotas(base, scheduler)
  const intake = openIntake(base, { storeHealth, scheduler, mailerDaemon, limits: limitUpkeep, quotas })
  const entry = noticeEntry({ intake, events, rewriting: () => rules().rewriting, signing: () => rules().signing })
  const mail = (braked: string) => tellPostmaster(brakeMail(braked), { intake, entry, clock, config: rules().config })
  return {
    mailerDaemon,
    limits: limitUpkeep,
    scheduler,
    classes: new ClassRegistry({ store, clock, bands, isShared, added: () => scheduler.scan() }),
    quotas,
    intake,
    entry,
    suppressions: new Suppressions({ store, clock, events, recorder, isShared, braked: mail }, rules().config),
    tlsReports: reportSender(base, intake),
    submissions: new SubmissionReturner({ store, clock, events, recorder, entry, settings: () => rules().notices }),
  }
}

/** Queues a mail of the class `resource` to the postmaster. */
async function tellPostmaster(
  mail: Omit<OperatorMail, 'recipients'>,
  deps: Parameters<typeof queueOperatorMail>[1] & { readonly config: Rules['config'] },
): Promise<void> {
  const { notify_classes: classes, error_notice_recipient: recipient, myorigin } = deps.config
  const address = parseMailbox(recipient, myorigin)
  if (classes.includes('resource') && address !== undefined) await queueOperatorMail({ ...mail, recipients: [address] }, deps)
}

function watchStore({ store, clock, events, recorder, membership }: QueueBase): StoreHealth {
  const troubles = new StoreTroubles(store.outbox, recorder, () => clock.now())
  const storeHealth = new StoreHealth({
    store: store.upkeep,
    clock,
    holds: () => membership.holds(),
    failed: (why) => {
      troubles.began(why)
      events.emit({ kind: 'store-unavailable', why })
    },
  })
  storeHealth.onRecovery(() => {
    events.emit({ kind: 'store-recovered' })
    void troubles.ended()
  })
  return storeHealth
}

function openScheduler(
  {
    store,
    clock,
    random,
    events,
    recorder,
    membership,
    providers,
    directory,
    contents,
    rules,
    agent,
    watchAgent = (own) => own,
  }: QueueBase,
  notices: MailerDaemon,
  state: Pick<SchedulerPorts, 'storeHealth' | 'active' | 'table' | 'limits'>,
): Scheduler {
  return new Scheduler({
    ...state,
    store,
    clock,
    events,
    recorder,
    membership,
    agent: watchAgent(agent),
    policies: () => rules().policies,
    directory,
    fillsDirectory: providers === undefined,
    noticeSettings: () => rules().notices,
    notices,
    contents,
    draw: (key) => random.draw(key),
  })
}

function openQuotas({ store, clock, events, reader, recorder, membership, rules }: QueueBase, scheduler: Scheduler): QuotaUpkeep {
  const deps = {
    store,
    clock,
    events,
    reader,
    recorder,
    policies: () => rules().policies,
    scheduler,
    owns: (key: string) => membership.owns(key),
    isShared: membership.isShared,
  }
  return new QuotaUpkeep(deps, rules().config)
}

interface IntakeParts extends Pick<QueueParts, 'scheduler' | 'mailerDaemon' | 'limits' | 'quotas'> {
  readonly storeHealth: StoreHealth
}

function openIntake({ store, clock, events, recorder, contents, rules }: QueueBase, parts: IntakeParts): Intake {
  const { storeHealth, scheduler, mailerDaemon, limits, quotas } = parts
  return new Intake({
    store,
    storeHealth,
    clock,
    events,
    recorder,
    contents,
    scheduler,
    notices: mailerDaemon,
    limits: limits.limits,
    quotas: quotas.quotas,
    scheduledLimit: new ScheduledLimit({ store, clock, settings: () => rules().config }),
    destinationOf: (address, sender) => rules().router.route(address, sender).destination,
    policies: () => rules().policies,
    keepsContent: () => rules().config.returned_content_retention > 0,
    needed: () => Math.max(rules().config.queue_minfree, 1.5 * rules().config.message_size_limit),
  })
}

function reportSender({ net, clock, store, random, events, membership, rules }: QueueBase, intake: Intake): ReportSender {
  const entry = {
    intake,
    clock,
    sender: () => rules().config.smtp_tlsrpt_sender,
    signing: () => rules().signing,
    keepsTexts: () => rules().config.queue_index_headers,
  }
  return new ReportSender({
    net,
    clock,
    store,
    settings: () => tlsReportSettings(rules().config),
    owns: (domain) => membership.owns(domain),
    draw: (key) => random.draw(key),
    mail: (report, recipient) => queueReport(report, recipient, entry),
    note: (text, level) => events.emit({ kind: 'note', level, text }),
  })
}
