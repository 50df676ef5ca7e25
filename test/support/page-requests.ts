/** Requests to the page of a daemon as a browser without scripts makes them, each in the session of a role, and the texts of the answers. */
import { wholeWords } from './page-client.ts'
import type { PageDaemon, PageRole } from './page-daemon.ts'

type Init = Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> }

/** Redirects are not followed. `usual` is the role of requests that name none. */
export function pageRequests(daemon: () => PageDaemon, usual: PageRole) {
  const cookies = new Map<PageRole, Promise<string>>()
  const cookieOf = (role: PageRole = usual): Promise<string> => {
    const cookie = cookies.get(role) ?? daemon().cookie(role)
    cookies.set(role, cookie)
    return cookie
  }
  const ask = async (path: string, role?: PageRole, { headers, ...init }: Init = {}): Promise<Response> => {
    const cookie = await cookieOf(role)
    return fetch(daemon().url + path, { redirect: 'manual', ...init, headers: { accept: 'text/html', cookie, ...headers } })
  }
  const textOf = async (path: string, role?: PageRole): Promise<string> => wholeWords(await (await ask(path, role)).text())
  /** Sends a form. */
  const post = (path: string, fields: Readonly<Record<string, string>> | string, role?: PageRole): Promise<Response> => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded', origin: daemon().url.slice(0, -1) }
    return ask(path, role, { method: 'POST', body: new URLSearchParams(fields).toString(), headers })
  }
  return { cookieOf, ask, textOf, post }
}

/** The text of a screen below its head, with one space for each gap. */
export const wordsIn = (markup: string): string =>
  wholeWords(markup.slice(markup.indexOf('<main')))
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
