/**
 * Parses bounce_template_file in the format of bounce(5): `name = <<END`, the template's lines, then `END`. A template has a
 * header, an empty line and a text with `$variables`. All problems are reported together; an invalid file is never ignored.
 */
import type { Problem } from '../config/values/problem.ts'

export type TemplateName = 'failure_template' | 'delay_template' | 'success_template' | 'verify_template'

/** A template as written in the file. */
export interface RawTemplate {
  readonly name: TemplateName
  readonly fields: ReadonlyMap<FieldName, string>
  readonly text: readonly RawLine[]
}

export interface RawLine {
  readonly where: string
  readonly line: string
}

type FieldName = 'charset' | 'from' | 'subject' | 'postmaster-subject'

/** Names of the templates. `verify_template` is accepted because files for Postfix have it; deferd sends no such reports. */
const NAMES: readonly TemplateName[] = ['failure_template', 'delay_template', 'success_template', 'verify_template']
const FIELDS: readonly FieldName[] = ['charset', 'from', 'subject', 'postmaster-subject']
/** Templates of notices that the postmaster may get a copy of; these templates may have Postmaster-Subject. */
const WITH_COPIES: readonly TemplateName[] = ['failure_template', 'delay_template']

/** Maximum length of a line of text, below the 998 octets of RFC 5321 §4.5.3.1.6. */
const LONGEST_LINE = 240

/** The allowed forms of a From field; see templates.ts. */
const MAILBOX = /^(?:[^<>()]*<[^<>()\s]+>|[^<>()\s]+\s+\([^()]*\)|[^<>()\s]+)$/

const CONTROL = /[^\P{Cc}\t]/u

/** The templates of a file, in the file's order. */
export function parseTemplateFile(content: string, file: string, problems: Problem[]): readonly RawTemplate[] {
  const lines = content.split(/\r?\n/).map((line, index): RawLine => ({ line, where: `${file}:${index + 1}` }))
  const templates: RawTemplate[] = []
  for (let at = 0; at < lines.length; at++) {
    const { line, where } = lines[at] ?? { line: '', where: file }
    if (/^\s*(?:#|$)/.test(line)) continue
    const start = /^(\w+)\s*=\s*<<\s*(\S+)\s*$/.exec(line)
    if (start === null) {
      problems.push({ where, text: 'expected "name = <<END", the lines of a template and END' })
      continue
    }
    const end = lines.findIndex((one, index) => index > at && one.line.trimEnd() === start[2])
    if (end < 0) {
      problems.push({ where, text: `the line ${start[2]} that ends the template is missing` })
      break
    }
    const name = NAMES.find((known) => known === start[1])
    if (name === undefined) problems.push({ where, text: `unknown template ${start[1]}; there are ${NAMES.join(', ')}` })
    else if (templates.some((one) => one.name === name)) problems.push({ where, text: `${name} is given twice` })
    else templates.push(parseTemplate(name, lines.slice(at + 1, end), where, problems))
    at = end
  }
  return templates
}

function parseTemplate(name: TemplateName, lines: readonly RawLine[], where: string, problems: Problem[]): RawTemplate {
  const blank = lines.findIndex(({ line }) => line.trim() === '')
  if (blank < 0) problems.push({ where, text: `${name}: an empty line must part header and text` })
  const header = blank < 0 ? lines : lines.slice(0, blank)
  const text = blank < 0 ? [] : lines.slice(blank + 1)
  for (const { line, where: place } of text) {
    if (CONTROL.test(line)) problems.push({ where: place, text: 'a control character' })
    if (line.length > LONGEST_LINE) problems.push({ where: place, text: `a line of more than ${LONGEST_LINE} characters` })
  }
  return { name, text, fields: parseFields(name, header, problems) }
}

function parseFields(name: TemplateName, header: readonly RawLine[], problems: Problem[]): ReadonlyMap<FieldName, string> {
  const fields = new Map<FieldName, string>()
  for (const { line, where } of header) {
    const field = /^([^\s:]+):\s*(.*?)\s*$/.exec(line)
    const known = FIELDS.find((one) => one === field?.[1]?.toLowerCase())
    const value = field?.[2] ?? ''
    if (field === null || known === undefined || (known === 'postmaster-subject' && !WITH_COPIES.includes(name))) {
      problems.push({
        where,
        text: `${name}: expected Charset, From, Subject${WITH_COPIES.includes(name) ? ' or Postmaster-Subject' : ' only'}`,
      })
    } else if (fields.has(known)) problems.push({ where, text: `${field[1]} is given twice` })
    else if (value === '') problems.push({ where, text: `${field[1]} is empty` })
    else if (known === 'charset' && !/^(?:us-ascii|utf-8)$/i.test(value))
      problems.push({ where, text: `${field[1]} must be us-ascii or utf-8` })
    else if (known === 'from' && !MAILBOX.test(value))
      problems.push({ where, text: `${field[1]} must be an address, "Name <address>" or "address (Name)"` })
    else if (!/^[ -~]{1,200}$/.test(value))
      problems.push({ where, text: `${field[1]} must be at most 200 characters of ASCII (RFC 2047 for others)` })
    else fields.set(known, value)
  }
  return fields
}
