// The site in the browser: search, the choice of a version, and the dark mode. It asks no other host.
/* global OPTIONS, SEARCH -- search.ts has them, and write-site.ts writes them above. */
const { root, version } = document.documentElement.dataset
const base = new URL(`${root || '.'}/`, document.baseURI)

const loaded = (src) =>
  new Promise((resolve, reject) => {
    const script = document.createElement('script')
    Object.assign(script, { src, onload: resolve, onerror: () => reject(new Error(`cannot load ${src}`)) })
    document.head.append(script)
  })

const fetched = async (url) => {
  const answer = await fetch(url)
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`)
  return answer
}

let index
async function loadIndex() {
  await loaded(new URL('site/minisearch.js', base).href)
  const text = await (await fetched(new URL('site/search.json', base))).text()
  return globalThis.MiniSearch.loadJSON(text, OPTIONS)
}

const results = document.querySelector('#results')
const input = document.querySelector('input[type=search]')

function show(found) {
  const list = document.createElement('ol')
  for (const { title, page, at } of found) {
    const item = document.createElement('li')
    const link = document.createElement('a')
    link.href = new URL(at, base).href
    link.textContent = title
    item.append(link, ` ${page}`)
    list.append(item)
  }
  results.replaceChildren(found.length === 0 ? 'Nothing was found.' : list)
}

async function search() {
  const text = input.value.trim()
  results.hidden = text === ''
  if (text === '') return
  try {
    index ??= loadIndex()
    const ready = await index
    if (text === input.value.trim()) show(ready.search(text, SEARCH).slice(0, 12))
  } catch {
    index = undefined
    results.textContent = 'The index cannot be loaded: the search needs the site on a web server.'
  }
}

input.addEventListener('input', () => void search())
input.form.addEventListener('submit', (event) => {
  event.preventDefault()
  results.querySelector('a')?.click()
})
results.addEventListener('click', (event) => {
  if (event.target.closest('a')) results.hidden = true
})

const select = document.querySelector('.version select')
async function offerVersions() {
  const versions = await (await fetched(new URL('../versions.json', base))).json()
  select.replaceChildren(...versions.map((one) => new Option(one, one, one === version, one === version)))
}
// Without a web server there is one version.
if (location.protocol !== 'file:') offerVersions().catch(() => undefined)
// The same page of the other version; its first page when it has no such one.
select.addEventListener('change', async () => {
  const other = new URL(`../${select.value}/`, base)
  const page = new URL(location.pathname.slice(base.pathname.length), other)
  const { ok } = await fetch(page, { method: 'HEAD' }).catch(() => ({ ok: false }))
  location.href = ok ? page.href : new URL('index.html', other).href
})

const mode = document.querySelector('.mode')
const prefersDark = matchMedia('(prefers-color-scheme: dark)')
function setMode(isDark) {
  document.documentElement.dataset.mode = isDark ? 'dark' : 'light'
  mode.setAttribute('aria-pressed', String(isDark))
}
const kept = localStorage.getItem('mode')
setMode(kept === null ? prefersDark.matches : kept === 'dark')
mode.addEventListener('click', () => {
  const isDark = document.documentElement.dataset.mode !== 'dark'
  localStorage.setItem('mode', isDark ? 'dark' : 'light')
  setMode(isDark)
})
