/** Conditions on mail in the query of a request, and the sentence about mail that does not come. */
import { z } from 'zod'
import { nearest } from '../config/values/problem.ts'
import { parseNotice } from '../bounce/dsn-parser.ts'
import { NOTICE_ACTIONS } from '../bounce/dsn-status.ts'
import { patternMatcher } from '../patterns/filter-pattern.ts'
import { plural } from '../presentation/text.ts'
import type { World } from '../testkit/world.ts'
import { mailsOf, type NumberedMail } from './kept-mail.ts'
import { parseMail, type ParsedMail } from '../mail/mime/parsed-mail.ts'

const pattern = z.string().min(1).max(1_000)

const CONDITIONS = {
  subject: pattern.optional().describe('subject; * matches any text'),
  from: z.string().max(1_000).optional().describe('reverse-path; * matches any text'),
  contains: pattern.optional().describe('part of the text, or of the HTML'),
  notice: z.enum(NOTICE_ACTIONS).optional().describe('a notice with this action'),
  after: z.coerce.number().int().min(0).optional().describe('id of a mail: only later ones'),
  link: pattern.optional().describe('only links whose URL or text matches; * matches any text'),
}

const HEADER = /^header\.([!-9;-~]+)$/

/** The conditions, with other parameters; besides them `header.NAME` for each field. */
export const mailConditions = <Shape extends z.ZodRawShape>(others: Shape) =>
  z
    .object({ ...CONDITIONS, ...others })
    .catchall(z.string().max(1_000))
    .superRefine((query, context) => {
      const known = new Set([...Object.keys(CONDITIONS), ...Object.keys(others)])
      const keys = Object.keys(query).filter((name) => !known.has(name) && !HEADER.test(name))
      if (keys.length > 0)
        context.addIssue({
          code: 'unrecognized_keys',
          keys,
          input: query,
          message: `unknown; known: ${[...known].join(', ')}, header.NAME`,
        })
    })

type MailConditions = { readonly [Name in keyof typeof CONDITIONS]?: z.output<(typeof CONDITIONS)[Name]> }

/** Returns a predicate of the mail that satisfies all conditions. */
export function matcherOf(query: MailConditions & Readonly<Record<string, unknown>>): (one: NumberedMail) => boolean {
  const { subject, from, contains, notice, after = 0 } = query
  const fields = Object.entries(query).flatMap(([name, value]) => {
    const [, field] = HEADER.exec(name) ?? []
    return field === undefined ? [] : [{ field: field.toLowerCase(), matches: patternMatcher(String(value)) }]
  })
  const parsed: ((mail: ParsedMail) => boolean)[] = fields.map(
    ({ field, matches }) =>
      ({ headers }) =>
        headers.some(({ name, value }) => name === field && matches(value)),
  )
  if (subject !== undefined) parsed.push((mail) => patternMatcher(subject)(mail.subject))
  if (contains !== undefined) parsed.push(({ text, html }) => `${text ?? ''}\n${html ?? ''}`.includes(contains))
  return ({ id, mail }) => {
    if (id <= after || (from !== undefined && !patternMatcher(from)(mail.sender))) return false
    if (notice !== undefined && parseNotice(mail.content)?.action !== notice) return false
    if (parsed.length === 0) return true
    const whole = parseMail(mail.content)
    return parsed.every((holds) => holds(whole))
  }
}

const SUBJECTS_SHOWN = 3

/** A sentence about the mail that a mailbox has in place of the one that was waited for, with the nearest address that has mail. */
export function missingMail(world: World, address: string, waited: string): string {
  const mails = mailsOf(world, address)
  const subjects = mails.slice(-SUBJECTS_SHOWN).map(({ mail }) => JSON.stringify(parseMail(mail.content).subject))
  const { attempts } = world.recipient(address)
  const last = [...Map.groupBy(attempts, ({ queueId }) => queueId).values()].flatMap((those) => those.at(-1) ?? [])
  const deferred = last.filter(({ outcome }) => outcome === 'deferred')
  const reasons = deferred.at(-1)?.reply ?? deferred.at(-1)?.reason
  const others = new Map<string, number>()
  for (const { recipients } of world.received)
    for (const one of recipients) if (one !== address) others.set(one, (others.get(one) ?? 0) + 1)
  const meant = nearest(address, others.keys())
  return [
    `${address} has ${mails.length === 0 ? '0 mails' : `${plural(mails.length, 'mail')} that ${mails.length === 1 ? 'does' : 'do'} not match (${subjects.join(', ')})`} after ${waited}`,
    deferred.length === 0
      ? ''
      : ` (${plural(deferred.length, 'message')} ${deferred.length === 1 ? 'is' : 'are'} deferred for it: ${reasons}; advance the clock)`,
    meant === undefined ? '' : `; ${meant} has ${others.get(meant)}`,
  ].join('')
}
