/** One line of `deferd check`. */
export interface Finding {
  readonly what: string
  readonly verdict: 'ok' | 'warning' | 'error'
  readonly text: string
}

export const ok = (what: string, text: string): Finding => ({ what, verdict: 'ok', text })
export const warning = (what: string, text: string): Finding => ({ what, verdict: 'warning', text })
export const error = (what: string, text: string): Finding => ({ what, verdict: 'error', text })
