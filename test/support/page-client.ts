/** A person at the page, without a browser: reads screens, follows links and sends forms, in the session of a login. */
import { askForLoginCode } from '../../src/cli/queue-client/api-client.ts'

export type PageRole = 'viewer' | 'operator' | 'admin'

export interface PageScreen {
  readonly status: number
  /** Path of the screen below the root, with its query. */
  readonly place: string
  readonly markup: string
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

/** The text of markup that has entities. */
export const plain = (markup: string): string =>
  markup.replace(/&(#?\w+);/g, (whole, name: string) =>
    /^#\d+$/.test(name) && ENTITIES[name] === undefined ? String.fromCodePoint(Number(name.slice(1))) : (ENTITIES[name] ?? whole),
  )

/** Markup without the places at which words may be broken. */
export const wholeWords = (markup: string): string => markup.replaceAll(/<wbr\b[^>]*>/g, '')

/** Text of a screen as people read it: without tags and places at which words may be broken, with single blanks. */
export const textOf = ({ markup }: PageScreen): string =>
  plain(
    wholeWords(markup)
      .replace(/<(head|svg)\b.*?<\/\1\s*>/gs, '')
      .replace(/<[^>]*>/g, ' ')
      .replace(/\s+/g, ' '),
  )

/** Values of the fields of a form, as a browser sends them when nothing is entered. */
function fieldsOf(form: string): URLSearchParams {
  const values = new URLSearchParams()
  for (const [tag] of form.matchAll(/<input\b[^>]*>/g)) {
    const attribute = (name: string): string | undefined => {
      const found = new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1]
      return found === undefined ? undefined : plain(found)
    }
    const name = attribute('name')
    const type = attribute('type')
    const isSent = (type !== 'checkbox' && type !== 'radio') || /\schecked\b/.test(tag)
    if (name !== undefined && isSent) values.append(name, attribute('value') ?? '')
  }
  return values
}

export class PageClient {
  readonly #root: string
  readonly #cookie: string

  private constructor(root: string, cookie: string) {
    this.#root = root
    this.#cookie = cookie
  }

  /** Logs in at the page of the daemon that has this queue directory. `root` is the URL of its page. */
  static async logIn(root: string, queueDirectory: string, role: PageRole = 'admin'): Promise<PageClient> {
    const made = await askForLoginCode(queueDirectory, { user: 'alice', role, content: role === 'admin' })
    const response = await fetch(`${root}login`, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin: new URL(root).origin, 'content-type': 'application/x-www-form-urlencoded' },
      body: `code=${made?.code ?? ''}`,
    })
    return new PageClient(root, response.headers.get('set-cookie')?.split(';', 1)[0] ?? '')
  }

  /** The field Cookie of a request in this session. */
  get cookie(): string {
    return this.#cookie
  }

  /** Loads a screen. */
  async open(place: string, init: RequestInit = {}): Promise<PageScreen> {
    const url = new URL(place, this.#root)
    const response = await fetch(url, { redirect: 'manual', ...init, headers: this.#headers(init) })
    const location = response.headers.get('location')
    if (response.status === 303 && location !== null) return this.open(this.#placeOf(new URL(location, url)))
    return { status: response.status, place: this.#placeOf(url), markup: await response.text() }
  }

  /** The JSON of the API at a path below `api/v1/`. */
  async json(path: string): Promise<unknown> {
    const response = await fetch(new URL(`api/v1/${path}`, this.#root), { headers: { cookie: this.#cookie } })
    return response.json()
  }

  /** Sends the form with this button, and returns the screen to which it leads. */
  async press(screen: PageScreen, button: string, entered: Readonly<Record<string, string>> = {}): Promise<PageScreen> {
    const forms = [...screen.markup.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gs)]
    const [, tag = '', form = ''] =
      forms.find(([, , content = '']) => content.replaceAll(/\s*([<>])\s*/g, '$1').includes(`>${button}</button>`)) ?? []
    const action = /\saction="([^"]*)"/.exec(tag)?.[1]
    if (action === undefined) throw new Error(`${screen.place} has no form with the button ${button}: ${textOf(screen)}`)
    const values = fieldsOf(form)
    for (const [name, value] of Object.entries(entered)) values.set(name, value)
    const url = new URL(plain(action), new URL(screen.place, this.#root))
    if (!/\smethod="post"/.test(tag)) return this.open(`${this.#placeOf(url)}?${values.toString()}`)
    return this.open(this.#placeOf(url), { method: 'POST', body: values })
  }

  /** Follows the first link with this text. */
  follow(screen: PageScreen, text: string): Promise<PageScreen> {
    const links = [...screen.markup.matchAll(/<a\b([^>]*)>(.*?)<\/a\s*>/gs)]
    const found = links.find(([, , content = '']) => plain(content.replace(/<[^>]*>/g, '')).trim() === text)
    const href = /\shref="([^"]*)"/.exec(found?.[1] ?? '')?.[1]
    if (href === undefined) throw new Error(`${screen.place} has no link ${text}: ${textOf(screen)}`)
    return this.open(this.#placeOf(new URL(plain(href), new URL(screen.place, this.#root))))
  }

  #headers({ method }: RequestInit): Readonly<Record<string, string>> {
    const form = method === 'POST' ? { origin: new URL(this.#root).origin } : {}
    return { accept: 'text/html', cookie: this.#cookie, ...form }
  }

  #placeOf(url: URL): string {
    return url.href.slice(this.#root.length)
  }
}
