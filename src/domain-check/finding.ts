/** A finding of `deferd check domain`. */

/** `note` is neither good nor wrong; `unknown` is a look-up that failed temporarily. */
export type Verdict = 'ok' | 'note' | 'wrong' | 'unknown'

export interface Finding {
  readonly what: string
  readonly verdict: Verdict
  readonly text: string
}

/** The worst verdict: `wrong` before `unknown`, and `ok` for neither. */
export function worst(findings: readonly Pick<Finding, 'verdict'>[]): Exclude<Verdict, 'note'> {
  const has = (verdict: Verdict) => findings.some((finding) => finding.verdict === verdict)
  return has('wrong') ? 'wrong' : has('unknown') ? 'unknown' : 'ok'
}

const finding =
  (verdict: Verdict) =>
  (what: string, text: string): Finding => ({ what, verdict, text })

export const ok = finding('ok')
export const note = finding('note')
export const wrong = finding('wrong')
export const unknown = finding('unknown')
