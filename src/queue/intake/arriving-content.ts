/**
 * The steps that the content of an arriving message passes: checks, edits of the header, and digests of what is queued. Tells what they have found
 * in it.
 */
import { isAscii } from 'node:buffer'
import { CheckedContent, NO_VERDICT, type CheckReport, type ContentRules, type Verdict } from '../../checks/checked-content.ts'
import type { ArrivingMessage } from '../../dkim/message-signing.ts'
import type { ContentEntry, ContentStep } from '../../mail/content-step.ts'
import { EditedHeader, type ReadFields } from '../../mail/edited-header.ts'
import type { Completion } from '../../mail/header-addresses.ts'
import { keptMessageId, NOT_SHOWN, shownFields, type ShownFields } from '../../mail/mime/shown-fields.ts'
import { maskControls, type SmtpReply } from '../../mail/smtp-reply.ts'
import type { ClassChoice } from './class-choice.ts'
import { missingFields, type Additions } from './missing-fields.ts'

export interface ArrivingLimits {
  /** Maximum octets of a header field (header_size_limit). */
  readonly headerField: number
  /** Lower-case names of the header fields to remove. */
  readonly dropped: ReadonlySet<string>
  /** Whether Subject and From are kept (queue_index_headers). */
  readonly keepsTexts: boolean
  /** Lower-case names of the fields that are keys of quotas or shares. */
  readonly read: ReadonlySet<string>
}

/** Treatment of a message that access restrictions of its session ask for (Postfix access(5)). */
export interface Handling extends Readonly<Verdict> {
  /** Header fields to add before all others, without line ends. */
  readonly prepended: readonly string[]
}

/** Checks of one message. */
export interface ContentChecks {
  readonly rules: ContentRules<'body'>
  readonly report: Pick<CheckReport, 'took' | 'warn'>
}

export interface ArrivingFacts {
  /** The Received field of this relay. */
  readonly trace: string
  /** Fields to add when they are missing; null when the mail is not local. */
  readonly additions: Additions | null
  /** Completes the addresses of the header; null when the mail is not local. */
  readonly completion: Completion | null
  /** Signs the message; null when it gets no signature. */
  readonly signing: ArrivingMessage | null
  /** Checks of the content; null without any. */
  readonly checks: ContentChecks | null
  /** Null for ordinary treatment. */
  readonly handling: Handling | null
  /** Decides about the class; null without classes. */
  readonly classes: Pick<ClassChoice, 'header'> | null
}

interface ArrivingContentDeps {
  readonly limits: ArrivingLimits
  /** Adds bytes to the content that will be queued. */
  readonly keep: (bytes: Buffer) => void
  /** False when the content that follows is ignored. */
  readonly isWanted: () => boolean
  /** Refuses the message by a check, which has logged the reason. */
  readonly refuse: (reply: SmtpReply) => void
  /** Called at the end of the header, with the number of relays that the message has passed. */
  readonly headerEnds: (hops: number) => void
}

/** Maximum number of characters of a header field that is the key of a quota or a share. */
const KEY_LIMIT = 255

export class ArrivingContent {
  readonly #facts: ArrivingFacts
  readonly #deps: ArrivingContentDeps
  readonly #header: EditedHeader<'body'>
  /** The first step. */
  readonly #entry: ContentEntry
  /** Examines the content; null without checks. */
  readonly #checked: CheckedContent<'body'> | null
  #messageId: string | undefined
  #texts: ShownFields = NOT_SHOWN
  #eightBit = false

  constructor(facts: ArrivingFacts, deps: ArrivingContentDeps) {
    this.#facts = facts
    this.#deps = deps
    const { dropped, headerField: fieldLimit, keepsTexts: readsTexts, read } = deps.limits
    const last = signed(facts.signing, this.#queuedContent())
    for (const field of facts.handling?.prepended ?? []) last.header(Buffer.from(`${field}\r\n`))
    this.#header = new EditedHeader(
      { dropped, fieldLimit, readsTexts, completion: facts.completion, request: facts.classes?.header ?? undefined, read },
      last,
      (fields) => this.#endHeader(fields),
    )
    this.#checked =
      facts.checks === null ? null : new CheckedContent(facts.checks.rules, { ...facts.checks.report, refuse: deps.refuse }, this.#header)
    this.#entry = this.#checked ?? this.#header
    if (this.#checked === null) deps.keep(Buffer.from(facts.trace))
    else this.#checked.trace(facts.trace, deps.keep)
  }

  /** The last step: adds what is left to the content that will be queued. */
  #queuedContent(): ContentStep<'body'> {
    const keep = (bytes: Buffer): undefined => {
      if (!this.#deps.isWanted() || bytes.length === 0) return
      this.#eightBit ||= !isAscii(bytes)
      this.#deps.keep(bytes)
    }
    return { permits: 'body', header: keep, insert: keep, beginBody: keep, body: keep, end: () => undefined }
  }

  /** Takes the next bytes, with CRLF line ends. The caller should stop reading until a promise resolves. */
  write(piece: Buffer): Promise<void> | undefined {
    return this.#entry.write(piece)
  }

  async end(): Promise<void> {
    await this.#entry.end()
  }

  /** Number of Received fields so far, that of this relay included. */
  get hops(): number {
    return 1 + this.#header.fields.hops
  }

  /** The Message-Id, as received or as added; undefined before the end of the header, and without one. */
  get messageId(): string | undefined {
    return this.#messageId
  }

  /** Subject and From; empty before the end of the header, and when they are not kept. */
  get texts(): ShownFields {
    return this.#texts
  }

  /** True when a byte above 127 was received. */
  get isEightBit(): boolean {
    return this.#eightBit
  }

  /** The class for which the header asks; undefined for none. */
  get asked(): string | undefined {
    return this.#header.fields.asked
  }

  /** The header fields that are keys of quotas or shares. */
  get keyFields(): ReadonlyMap<string, string> {
    return new Map([...this.#header.fields.read].map(([name, value]) => [name, maskControls(value).slice(0, KEY_LIMIT)]))
  }

  /** Treatment that the checks ask for. */
  get verdict(): Readonly<Verdict> {
    return this.#checked?.verdict ?? NO_VERDICT
  }

  /** Returns the fields that the header lacks. */
  #endHeader({ names, messageId, subject, from }: ReadFields): string {
    this.#deps.headerEnds(this.hops)
    const { additions } = this.#facts
    const missing = additions === null ? null : missingFields(additions, names)
    this.#messageId = missing?.messageId ?? (messageId === undefined ? undefined : keptMessageId(messageId))
    if (this.#deps.limits.keepsTexts) this.#texts = shownFields({ subject, from: from ?? missing?.from })
    return missing?.text ?? ''
  }
}

/** Adds the digest of what is queued to a step. */
function signed(signing: ArrivingMessage | null, next: ContentStep<'body'>): ContentStep<'body'> {
  if (signing === null) return next
  return {
    ...next,
    header: (bytes) => {
      signing.header(bytes)
      next.header(bytes)
    },
    insert: (field) => {
      signing.header(field)
      next.insert(field)
    },
    body: (bytes) => {
      signing.body(bytes)
      return next.body(bytes)
    },
  }
}
