/** The frame of every screen: head, navigation, search, state of the relay, and foot. */
import { html, type Html, type Part } from '../../presentation/html.ts'
import { zoneText } from '../../presentation/text.ts'
import { problemText, type FormProblem, type Labelled } from './fields.ts'
import { clockTime } from './times.ts'
import { shapeOf } from './marks.ts'
import { linkTo, type Query } from './links.ts'
import { renewed } from './renewed.ts'
import { navigation, type Place } from './navigation.ts'
import { timeBar } from './time-bar.ts'
import type { View } from './view.ts'

/** JSON whose members replace the texts of elements with `data-live`. */
interface LiveSource {
  /** Path below the root, answered with JSON. */
  readonly path: string
  /** Path of a stream of the same JSON (server-sent events); without one, the JSON is fetched every 10 s. */
  readonly stream?: string
}

export interface Screen {
  readonly title: string
  readonly place: Place | null
  readonly main: Html
  readonly live?: LiveSource | null
  readonly search?: string
  /** Seconds after which a browser without scripts loads the screen again. */
  readonly refresh?: number
  /** Scripts that the screen needs besides page.js. */
  readonly scripts?: readonly string[]
}

const head = (view: View, { title, refresh, scripts = [] }: Screen): Html =>
  html`<head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${title} · ${view.relay}</title>
    <link rel="icon" href="${view.root}${view.files}/icon.svg" type="image/svg+xml" />
    <link rel="stylesheet" href="${view.root}${view.files}/page.css" />
    <script type="module" src="${view.root}${view.files}/page.js"></script>
    ${scripts.map((name) => html`<script defer src="${view.root}${view.files}/${name}"></script>`)}
    ${refresh === undefined ? null : html`<noscript><meta http-equiv="refresh" content="${refresh}" /></noscript>`}
  </head>`

/** Marks of the states of health, of which a style shows one. */
const HEALTH_MARKS = [
  ['good', 'open'],
  ['slow', 'throttled'],
  ['failing', 'warning'],
] as const

const healthOf = ({ health }: View): Html | null =>
  health === null
    ? null
    : html`<p class="light ${health.state}" data-light>
        ${HEALTH_MARKS.map(([state, mark]) => html`<span class="when-${state}">${shapeOf(mark)}</span>`)}
        <span class="text">${health.text}</span>
      </p>`

const searchForm = (view: View, text: string): Html =>
  html`<form class="search" role="search" action="${view.root}search" method="get">
    <label for="search"
      ><svg viewBox="0 0 16 16" aria-hidden="true"><path d="M7 1.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 0 1 0-11zM11 11l4 4" /></svg
      ><span class="unseen">Queue id, Message-ID, address, subject</span></label
    >
    <input
      id="search"
      name="q"
      type="search"
      value="${text}"
      placeholder="Id, address or subject"
      autocomplete="off"
      autocapitalize="off"
      spellcheck="false"
      aria-keyshortcuts="/"
    />
  </form>`

/** The zone of the screen, with the way to another one for a client whose login is known. */
function zonePart(view: View): Part {
  const name = zoneText(view.clock.zone(view.now).offset)
  return view.requester.name === '' ? name : html`<a href="${linkTo(view, 'zone', { back: view.here })}" data-dialog>${name}</a>`
}

/** `· node mx2`; null for the only daemon of a queue. */
const nodePart = ({ node }: View): Html | null => (node === undefined ? null : html`<span class="node"> · node ${node}</span>`)

/** Names the nodes of whose memory the screen has nothing; null for a queue with one daemon. */
function unansweredPart({ unanswered }: View): Html | null {
  if (unanswered === undefined) return null
  const names = unanswered()
  const [verb, whose] = names.length === 1 ? ['does', 'its'] : ['do', 'their']
  const text = `${names.join(', ')} ${verb} not answer: the states of ${whose} destinations are those that the queue records, and ${whose} deliveries are missing.`
  return html`<div${renewed('unanswered')}>${names.length === 0 ? null : html`<p class="news" role="status">${text}</p>`}</div>`
}

const foot = (view: View, { live = null }: Screen): Html =>
  html`<footer>
    <p>
      deferd ${view.version} ·
      ${view.relay}${nodePart(view)}${view.requester.name === '' ? null : ` · ${view.requester.name}`}${view.requester.mayOperate || view.requester.name === '' ? null : ' (may look, not change)'}
    </p>
    <p>Times in ${zonePart(view)}</p>
    ${
      live === null
        ? view.requester.name === ''
          ? null
          : html`<p>As of ${clockTime(view, view.now / 1_000)}</p>`
        : html`<p class="live" hidden>
            <button type="button" class="plain" data-pause aria-pressed="false">Pause</button> <output data-live-state>live</output>
          </p>`
    }
    <form method="post" action="${view.root}logout"><button type="submit" class="plain">Log out</button></form>
  </footer>`

export const document = (view: View, screen: Screen): string => {
  const { live = null } = screen
  return html`<!doctype html>
    <html lang="en">
      ${head(view, screen)}
      <body
        data-root="${view.root}"
        data-now="${view.now}"
        data-offset="${view.clock.zone(view.now).offset}"
        data-who="${view.requester.name}"
        ${view.virtualTime === undefined ? null : html` data-speed="${view.virtualTime.speed}"`}
        ${live === null ? null : html` data-live-path="${live.path}"`}${live?.stream === undefined ? null : html` data-live-stream="${live.stream}"`}
      >
        <a class="skip" href="#main">Skip to content</a>
        <header>
          <p class="brand">
            <a href="${linkTo(view, '')}">deferd</a>
            <span><span class="relay">${view.relay}</span>${nodePart(view)}</span>
          </p>
          ${healthOf(view)} ${searchForm(view, screen.search ?? '')} ${navigation(view, screen.place)}
        </header>
        ${timeBar(view)}
        <p class="printed">as of ${clockTime(view, view.now / 1_000)}</p>
        <main id="main" tabindex="-1">${unansweredPart(view)}${screen.main}</main>
        ${foot(view, screen)}
      </body>
    </html> `.markup
}

/** Heading of a screen, with a sentence and buttons beside it. */
export const heading = (title: Part, about: Part = null, buttons: Part = null): Html =>
  html`<div class="top" ${renewed('heading')}>
    <div class="heading">
      <h1>${title}</h1>
      ${buttons === null ? null : html`<div class="buttons">${buttons}</div>`}
    </div>
    ${about === null ? null : html`<p class="about">${about}</p>`}
  </div>`

/** A date with its time, and a number with its unit, which a line end must not divide. */
const UNDIVIDED = /(\d{4}-\d\d-\d\d(?: \d\d:\d\d)?|\d+ %)/

/** A sentence whose figures stay on one line. */
const undivided = (sentence: Part): Part =>
  typeof sentence === 'string'
    ? sentence.split(UNDIVIDED).map((part, i) => (i % 2 === 0 ? part : html`<span class="whole">${part}</span>`))
    : sentence

/** The sentence that answers the question of a screen. One with `fragment` is renewed when what the screen waits for is known. */
export const answer = (sentence: Part, aside: Part = null, fragment: string | null = null): Html =>
  html`<div class="answer" ${renewed('answer')}${fragment === null ? null : html` data-fragment="${fragment}"`}>
    <p>${undivided(sentence)}</p>
    ${aside === null ? null : html`<p class="faint">${aside}</p>`}
  </div>`

export const section = (title: Part, content: Part, { aside = null, id = null }: { aside?: Part; id?: string | null } = {}): Html =>
  html`<section${id === null ? null : html` id="${id}"`}><div class="heading"><h2>${title}</h2>${aside === null ? null : html`<div class="aside">${aside}</div>`}</div>
${content}
</section>`

/** A link that looks like a button. With scripts, one that ends in `…` opens as a dialog. */
export const buttonLink = (href: string, text: string, kind = ''): Html =>
  html`<a class="button ${kind}" href="${href}" ${text.endsWith('…') ? html` data-dialog` : null}>${text}</a>`

/** A list; for an invalid form, what is wrong with it, since nothing was looked for. */
export const listOr = (problem: FormProblem | null, list: () => Html, fields: readonly Labelled[] = []): Html =>
  problem === null ? list() : html`<p class="problem" role="alert">${shapeOf('warning')} ${problemText(fields, problem)}</p>`

interface PagerState {
  /** Cursor of the next page; null after the last one. */
  readonly next: string | null
  readonly isFirst: boolean
  /** Name of the cursor in the query. */
  readonly parameter?: 'after' | 'before'
}

/** Links to the next and the first page of a listing. */
export const pager = (view: View, place: string, query: Query, { next, isFirst, parameter = 'after' }: PagerState): Html | null =>
  next === null && isFirst
    ? null
    : html`<nav class="pager" aria-label="Pages">
        ${isFirst ? null : html`<a class="button" href="${linkTo(view, place, { ...query, [parameter]: null })}">First page</a>`}${
          next === null
            ? null
            : html`<a class="button" href="${linkTo(view, place, { ...query, [parameter]: next })}" rel="next">Next page</a>`
        }
      </nav>`
