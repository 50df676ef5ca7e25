/** Fields that local mail must have (Postfix cleanup). In a resent message they are Resent- fields (RFC 5322 §3.6.6). Pure. */

/** Values of the fields. */
export interface Additions {
  readonly 'Message-Id': string
  readonly Date: string
  readonly From: string
}

/** The fields that a header lacks, with their line ends, and the values of Message-Id and From when they are among them. */
export function missingFields(
  additions: Additions,
  names: ReadonlySet<string>,
): { readonly text: string; readonly messageId: string | undefined; readonly from: string | undefined } {
  let prefix = ''
  for (const name of names) if (name.startsWith('resent-')) prefix = 'Resent-'
  let text = ''
  let messageId: string | undefined
  let from: string | undefined
  for (const name of FIELDS) {
    if (names.has((prefix + name).toLowerCase())) continue
    text += `${prefix}${name}: ${additions[name]}\r\n`
    if (name === 'Message-Id' && prefix === '') messageId = additions[name]
    if (name === 'From' && prefix === '') from = additions[name]
  }
  return { text, messageId, from }
}

const FIELDS = ['Message-Id', 'Date', 'From'] as const satisfies readonly (keyof Additions)[]
