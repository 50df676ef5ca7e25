/** Texts of actions for the log (Postfix smtpd_check.c). */
import type { AccessActionName } from '../telemetry/kinds/smtpd-kinds.ts'
import type { TakenAction } from './access-rules.ts'

/** `about` is `<ann@example.com>: Sender address`. */
export function describeAction({ action, about }: TakenAction): { readonly action: AccessActionName; readonly text: string } {
  const named = (name: AccessActionName, text: string, byDefault: string) => ({
    action: name,
    text: `${about} ${text === '' ? byDefault : text}`,
  })
  switch (action.kind) {
    case 'hold':
      return named('hold', action.text, 'triggers HOLD action')
    case 'discard':
      return named('discard', action.text, 'triggers DISCARD action')
    case 'redirect':
      return named('redirect', '', `triggers REDIRECT ${action.address}`)
    case 'bcc':
      return named('bcc', '', `triggers BCC ${action.address}`)
    case 'prepend':
      return named('prepend', '', `triggers PREPEND ${action.field}`)
    case 'note':
      return { action: action.level, text: action.text }
  }
}
