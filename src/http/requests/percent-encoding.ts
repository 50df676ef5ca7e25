/** Decodes percent-encoded text. Undefined when its encoding is invalid (RFC 3986 §2.1). */
export function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
