/**
 * The texts of notices: our own, or those of bounce_template_file. Variables are filled in once, at start, when
 * everything that is wrong with them can still be told to the operator.
 */
import type { Config } from '../config/options.ts'
import { ConfigError, type Problem } from '../config/problem.ts'
import { DAY, HOUR, MINUTE, SECOND, type Duration } from '../mail/clock.ts'
import { isInternational } from '../mail/address.ts'
import type { Debt } from '../queue/message.ts'
import { parseTemplateFile, type RawLine, type RawTemplate, type TemplateName } from './template-file.ts'

/** A text ready for use; variables are filled in. */
export interface Template {
  readonly charset: 'us-ascii' | 'utf-8'
  /** The From field. */
  readonly from: string
  readonly subject: string
  /** The subject of copies for the postmaster. */
  readonly postmasterSubject: string
  readonly text: readonly string[]
}

export type Templates = Readonly<Record<Debt, Template>>

/** What variables stand for. */
export interface TemplateConfig {
  readonly config: Pick<Config, 'myhostname' | 'myorigin' | 'delay_warning_time' | 'maximal_queue_lifetime'>
  /** Every parameter as one would write it; see LoadedConfig. */
  readonly written: ReadonlyMap<string, string>
}

export interface LoadedTemplates {
  readonly templates: Templates
  /** Texts that will read oddly, such as "0 hours". */
  readonly warnings: readonly string[]
}

const BUILT_IN = `
failure_template = <<END
From: Mail Delivery System <MAILER-DAEMON>
Subject: Undelivered Mail Returned to Sender
Postmaster-Subject: Postmaster Copy: Undelivered Mail

The mail system at $myhostname writes to you.

A message of yours did not reach everybody it was sent to. The addresses it
did not reach, and the reasons, are named below. Nothing more will be tried for
them: if the message matters, please send it again once the reason is gone.

If the reason says nothing to you, ask your postmaster, and keep this report:
it holds what the postmaster needs. What came back of your message is attached.
END

delay_template = <<END
From: Mail Delivery System <MAILER-DAEMON>
Subject: Delayed Mail (still being retried)
Postmaster-Subject: Postmaster Warning: Delayed Mail

The mail system at $myhostname writes to you.

THIS IS ONLY A WARNING. THERE IS NO NEED TO SEND YOUR MESSAGE AGAIN.

A message of yours is still waiting for some of those it was sent to. Their
addresses, and what keeps the message from them, are named below. Delivery is
tried again and again; you will hear when it is given up.
END

success_template = <<END
From: Mail Delivery System <MAILER-DAEMON>
Subject: Successful Mail Delivery Report

The mail system at $myhostname writes to you.

A message of yours has gone out to the addresses below: it was delivered, or
handed to the next mail system on its way. You get this report because it was
asked for, or because you were told before that the message was delayed.
END
`

const TEMPLATE_OF: Readonly<Record<Debt, TemplateName>> = {
  failure: 'failure_template',
  delay: 'delay_template',
  success: 'success_template',
}

/** Our own texts, or those of a file where it has them. Throws a ConfigError that tells all that is wrong. */
export function loadTemplates(variables: TemplateConfig, file?: { readonly path: string; readonly content: string }): LoadedTemplates {
  const problems: Problem[] = []
  const warnings: string[] = []
  const builtIn = parseTemplateFile(BUILT_IN, 'built-in', problems)
  const own = file === undefined ? [] : parseTemplateFile(file.content, file.path, problems)
  const filled = new Map<TemplateName, Template>()
  for (const raw of [...builtIn, ...own]) {
    const basis = filled.get(raw.name) ?? { charset: 'us-ascii', from: 'MAILER-DAEMON', subject: '', postmasterSubject: '', text: [] }
    filled.set(raw.name, fill(raw, basis, variables, { problems, warnings }))
  }
  const pick = (debt: Debt): Template => {
    const template = filled.get(TEMPLATE_OF[debt])
    if (template === undefined) throw new Error(`there is no ${TEMPLATE_OF[debt]}`)
    return template
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return { templates: { failure: pick('failure'), delay: pick('delay'), success: pick('success') }, warnings }
}

interface Complaints {
  readonly problems: Problem[]
  readonly warnings: string[]
}

/** A template with its variables filled in; fields that it lacks are those of the built-in one. */
function fill(raw: RawTemplate, basis: Template, variables: TemplateConfig, complaints: Complaints): Template {
  const charset = (raw.fields.get('charset') ?? 'us-ascii').toLowerCase()
  const text = raw.text.map((line) => expand(line, variables, complaints))
  if (charset === 'us-ascii') {
    const foreign = raw.text.find((_, index) => isInternational(text[index] ?? ''))
    if (foreign !== undefined) complaints.problems.push({ where: foreign.where, text: `${raw.name}: not ASCII; say "Charset: utf-8"` })
  }
  const from = raw.fields.get('from')
  return {
    charset: charset === 'utf-8' ? 'utf-8' : 'us-ascii',
    from: from === undefined ? basis.from : fromField(from, variables.config.myorigin),
    subject: raw.fields.get('subject') ?? basis.subject,
    postmasterSubject: raw.fields.get('postmaster-subject') ?? raw.fields.get('subject') ?? basis.postmasterSubject,
    text,
  }
}

/** `Name <address>`, `address (Name)` or `address`; an address without a domain is one of ours. */
function fromField(field: string, myorigin: string): string {
  const local = (address: string): string => (address.includes('@') ? address : `${address}@${myorigin}`)
  const angle = /^(.*?)\s*<([^<>]+)>$/.exec(field)
  if (angle !== null) return `${angle[1] ?? ''} <${local(angle[2] ?? '')}>`.trim()
  const comment = /^(\S+)\s+\(([^()]*)\)$/.exec(field)
  if (comment !== null) return `${comment[2] ?? ''} <${local(comment[1] ?? '')}>`
  return local(field)
}

const UNITS: Readonly<Record<string, Duration>> = { seconds: SECOND, minutes: MINUTE, hours: HOUR, days: DAY, weeks: 7 * DAY }

/** Fills in `$name`, `${name}` and `$(name)`; `$$` is a dollar sign. */
function expand({ line, where }: RawLine, variables: TemplateConfig, complaints: Complaints): string {
  return line.replace(
    /\$(?:(\$)|(\w+)|\{(\w+)\}|\((\w+)\))?/g,
    (whole, dollar?: string, plain?: string, braced?: string, round?: string) => {
      if (dollar !== undefined) return '$'
      const name = plain ?? braced ?? round
      const value = name === undefined ? undefined : valueOf(name, variables, where, complaints)
      if (value !== undefined) return value
      const text = name === undefined ? `${whole} is neither a variable nor $$` : `$${name} is no parameter`
      complaints.problems.push({ where, text })
      return ''
    },
  )
}

function valueOf(name: string, { config, written }: TemplateConfig, where: string, { warnings }: Complaints): string | undefined {
  const timed = /^(delay_warning_time|maximal_queue_lifetime)_(\w+)$/.exec(name)
  const unit = UNITS[timed?.[2] ?? '']
  if (timed !== null && unit !== undefined) {
    const time = timed[1] === 'delay_warning_time' ? (config.delay_warning_time[0] ?? 0) : config.maximal_queue_lifetime
    const value = Math.floor(time / unit)
    if (value === 0 || (value > 999 && unit < DAY)) warnings.push(`${where}: $${name} reads ${value}; another unit may suit better`)
    return String(value)
  }
  if (name === 'myhostname') return config.myhostname
  if (name === 'mydomain') return config.myhostname.replace(/^[^.]*\.(?=.)/, '')
  return written.get(name)
}
