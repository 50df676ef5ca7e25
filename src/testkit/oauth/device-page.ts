/** The page on which a person enters the code of a device. */
import type { HttpAnswer, HttpRequest } from './http-messages.ts'

/** Decides a login; a null user denies it. False for a code that no device waits for. */
type Decide = (code: string, user: string | null) => boolean

const page = (status: number, text: string, form = ''): HttpAnswer => ({
  status,
  type: 'text/html; charset=utf-8',
  body: `<!doctype html><html lang="en"><title>Device login</title><h1>Device login</h1><p>${text}</p>${form}</html>\n`,
  headers: { 'cache-control': 'no-store' },
})

const FORM = `<form method="post"><p><label>Code <input name="code" autofocus required></label>
<p><label>Mailbox <input name="user" type="email" required></label>
<p><button name="verdict" value="approve">Approve</button> <button name="verdict" value="deny" formnovalidate>Deny</button></form>`

/** Answers a request for the page: the form, or with `code`, `user` and `verdict` its result. */
export function devicePage({ method, body }: HttpRequest, decide: Decide): HttpAnswer {
  if (method !== 'POST')
    return page(200, 'Enter the code that the device shows. This authority is a simulation: there is no password.', FORM)
  const form = new URLSearchParams(body)
  const denied = form.get('verdict') === 'deny'
  const user = form.get('user') ?? ''
  if (!denied && !/^[^\s@<>]+@[^\s@<>]+$/.test(user)) return page(400, 'Enter an address such as app@contoso.example as mailbox.', FORM)
  if (!decide(form.get('code') ?? '', denied ? null : user))
    return page(400, 'No device waits for this code: it is unknown, used or past its end.', FORM)
  return page(200, denied ? 'The login was denied.' : 'The login was approved. Return to the device.')
}
