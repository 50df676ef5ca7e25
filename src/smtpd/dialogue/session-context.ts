/** Settings and parts that all sessions of an SMTP server share. */
import type { Config } from '../../config/options.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import type { Origin } from '../../queue/intake/share-key.ts'
import type { Clock } from '../../system/clock.ts'
import type { CommandStatsSettings } from './command-stats.ts'
import type { EtrnSettings } from './etrn-policy.ts'
import type { ExtensionFacts } from './extensions.ts'
import type { PeerRules } from './peer.ts'
import type { PriorityChoice } from './priority-request.ts'
import type { RecipientRules } from './recipient-admission.ts'

type SessionSettings = CommandStatsSettings &
  EtrnSettings &
  ExtensionFacts['settings'] &
  Pick<
    Config,
    | 'myhostname'
    | 'smtpd_banner'
    | 'smtpd_helo_required'
    | 'myorigin'
    | 'local_header_rewrite_clients'
    | 'soft_bounce'
    | 'smtpd_recipient_limit'
    | 'smtpd_recipient_overshoot_limit'
  >

export interface SessionContext extends PeerRules, RecipientRules {
  readonly settings: SessionSettings
  /** Returns the reply to MAIL when mail of this size, in bytes, which is held back or not, cannot be queued now, and undefined otherwise. */
  readonly refusal: (size: number, origin: Origin, isHeld: boolean) => Promise<SmtpReply | undefined> | SmtpReply | undefined
  /** Returns the reply to the RCPT that makes so many recipients, when a quota refuses them, and undefined otherwise. */
  readonly recipientRefusal: (origin: Origin, recipients: number) => Promise<SmtpReply | undefined> | undefined
  /** Decides about the priorities for which clients ask; null without classes. */
  readonly classes: () => PriorityChoice | null
  readonly flushDomain: FlushDomain
  readonly clock: Pick<Clock, 'now' | 'wall'>
  /** Returns the identity of a new transaction, for policy servers. */
  readonly nextInstance: () => string
}

/** Starts to flush the mail of a domain. Returns false when the queue cannot be flushed now. `who` names the client for the audit log. */
export type FlushDomain = (domain: string, who: string) => boolean
