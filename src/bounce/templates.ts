/**
 * Templates of notices: the built-in templates, overridden by those of bounce_template_file. Variables are replaced once, at
 * start, so that the operator learns of problems then.
 */
import type { Config } from '../config/options.ts'
import { ConfigError, type Problem } from '../config/values/problem.ts'
import { DAY, HOUR, MINUTE, SECOND, type Duration } from '../system/clock.ts'
import { isInternational } from '../mail/address.ts'
import type { NoticeDue } from '../mail/message.ts'
import { parseTemplateFile, type RawLine, type RawTemplate, type TemplateName } from './template-file.ts'

/** A template with its variables replaced. */
export interface Template {
  readonly charset: 'us-ascii' | 'utf-8'
  /** The From field. */
  readonly from: string
  readonly subject: string
  /** Subject of the copies for the postmaster. */
  readonly postmasterSubject: string
  readonly text: readonly string[]
}

export type Templates = Readonly<Record<NoticeDue, Template>>

/** Sources of the variables' values. */
interface TemplateConfig {
  readonly config: Pick<Config, 'myhostname' | 'myorigin' | 'delay_warning_time' | 'maximal_queue_lifetime'>
  /** Every parameter as written in the configuration; see LoadedConfig. */
  readonly written: ReadonlyMap<string, string>
}

export interface LoadedTemplates {
  readonly templates: Templates
  /** Warnings about misleading texts such as "0 hours". */
  readonly warnings: readonly string[]
}

const BUILT_IN = `
failure_template = <<END
From: Mail Delivery System <MAILER-DAEMON>
Subject: Undelivered Mail Returned to Sender
Postmaster-Subject: Postmaster Copy: Undelivered Mail

This is an automatic message from the mail system at $myhostname.

Your message could not be delivered to the addresses below. The reason follows
each address. The mail system will not try these addresses again: to reach
them, remove the cause and send the message again.

If you do not understand the reason, contact your postmaster and include this
report. Your message, or its header, is attached.
END

delay_template = <<END
From: Mail Delivery System <MAILER-DAEMON>
Subject: Delayed Mail (still being retried)
Postmaster-Subject: Postmaster Warning: Delayed Mail

This is an automatic message from the mail system at $myhostname.

THIS IS ONLY A WARNING. YOU DO NOT NEED TO SEND YOUR MESSAGE AGAIN.

Your message has not been delivered to the addresses below yet. The reason
follows each address. The mail system will keep trying, and will send another
report if it cannot deliver the message.
END

success_template = <<END
From: Mail Delivery System <MAILER-DAEMON>
Subject: Successful Mail Delivery Report

This is an automatic message from the mail system at $myhostname.

Your message was delivered to the addresses below, or accepted for them by the
next mail system. This report was requested with the message, or follows an
earlier report that the message was delayed.
END
`

const TEMPLATE_OF: Readonly<Record<NoticeDue, TemplateName>> = {
  failure: 'failure_template',
  delay: 'delay_template',
  success: 'success_template',
}

/** Loads the built-in templates and those of a file, which take precedence. Throws ConfigError with all problems. */
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
  const pick = (noticeDue: NoticeDue): Template => {
    const template = filled.get(TEMPLATE_OF[noticeDue])
    if (template === undefined) throw new Error(`there is no ${TEMPLATE_OF[noticeDue]}`)
    return template
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return { templates: { failure: pick('failure'), delay: pick('delay'), success: pick('success') }, warnings }
}

interface Complaints {
  readonly problems: Problem[]
  readonly warnings: string[]
}

/** Replaces the variables of a template. Missing fields are taken from the built-in template. */
function fill(raw: RawTemplate, basis: Template, variables: TemplateConfig, complaints: Complaints): Template {
  const charset = (raw.fields.get('charset') ?? 'us-ascii').toLowerCase()
  const text = raw.text.map((line) => expand(line, variables, complaints))
  if (charset === 'us-ascii') {
    const foreign = raw.text.find((_, index) => isInternational(text[index] ?? ''))
    if (foreign !== undefined)
      complaints.problems.push({ where: foreign.where, text: `${raw.name}: not ASCII; add "Charset: utf-8" to the template` })
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

/** Normalizes a From field: `Name <address>`, `address (Name)` or `address`. An address without a domain gets $myorigin. */
function fromField(field: string, myorigin: string): string {
  const local = (address: string): string => (address.includes('@') ? address : `${address}@${myorigin}`)
  const angle = /^(.*?)\s*<([^<>]+)>$/.exec(field)
  if (angle !== null) return `${angle[1] ?? ''} <${local(angle[2] ?? '')}>`.trim()
  const comment = /^(\S+)\s+\(([^()]*)\)$/.exec(field)
  if (comment !== null) return `${comment[2] ?? ''} <${local(comment[1] ?? '')}>`
  return local(field)
}

const UNITS: Readonly<Record<string, Duration>> = { seconds: SECOND, minutes: MINUTE, hours: HOUR, days: DAY, weeks: 7 * DAY }

/** Replaces `$name`, `${name}` and `$(name)`; `$$` is a dollar sign. */
function expand({ line, where }: RawLine, variables: TemplateConfig, complaints: Complaints): string {
  return line.replace(/\$(?:\$|\w+|\{\w+\}|\(\w+\))?/g, (whole) => {
    if (whole === '$$') return '$'
    const name = /\w+/.exec(whole)?.[0]
    const value = name === undefined ? undefined : valueOf(name, variables, where, complaints)
    if (value !== undefined) return value
    const text = name === undefined ? `${whole} is neither a variable nor $$` : `$${name} is not a parameter`
    complaints.problems.push({ where, text })
    return ''
  })
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
