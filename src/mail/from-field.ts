/** The From field of mail without one. */
import { maskControls } from './smtp-reply.ts'

/** A phrase of atoms (RFC 5322 §3.2.5), which needs no quotes. */
const ATOMS = /^[\w!#$%&'*+\-/=?^`{|}~ ]+$/

/** Builds a From field for mail without one (Postfix header_from_format = standard). */
export function fromField(fullName: string | undefined, address: string): string {
  const name = maskControls(fullName ?? '').trim()
  if (name === '') return `From: ${address}\r\n`
  // oxlint-disable-next-line no-control-regex -- ASCII is exactly this range
  const phrase = /^[\u0000-\u007f]*$/.test(name)
    ? ATOMS.test(name)
      ? name
      : `"${name.replaceAll(/(["\\])/g, '\\$1')}"`
    : `=?utf-8?B?${Buffer.from(name).toString('base64')}?=`
  return `From: ${phrase} <${address}>\r\n`
}
