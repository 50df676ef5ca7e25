/** Fields that local mail must have (Postfix cleanup). In a resent message they are Resent- fields (RFC 5322 §3.6.6). Pure. */

/** Values of the fields. */
export interface Additions {
  readonly 'Message-Id': string
  readonly Date: string
  readonly From: string
}

/** The fields that a header lacks, with their line ends, and the value of Message-Id when it is one of them. */
export function missingFields(
  additions: Additions,
  names: ReadonlySet<string>,
): { readonly text: string; readonly messageId: string | undefined } {
  const prefix = [...names].some((name) => name.startsWith('resent-')) ? 'Resent-' : ''
  const missing = Object.entries(additions).filter(([name]) => !names.has((prefix + name).toLowerCase()))
  const text = missing.map(([name, value]) => `${prefix}${name}: ${value}\r\n`).join('')
  return { text, messageId: prefix === '' ? missing.find(([name]) => name === 'Message-Id')?.[1] : undefined }
}
