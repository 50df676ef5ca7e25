/** Plots that can be read without colours: looks of series, labels of logarithmic axes, shaded outages. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { axisScale, logTicks } from '../../src/presentation/plots/plot-axis.ts'
import type { Plot } from '../../src/presentation/plots/plot.ts'
import { lookOf } from '../../src/presentation/plots/series-look.ts'
import { svgPlot } from '../../src/presentation/plots/svg-plot.ts'
import { renderPage } from '../../src/simulator/pages/page.ts'
import { scenarioPage } from '../../src/simulator/pages/scenario-page.ts'
import { outagesOf } from '../../src/simulator/scenario/outages.ts'
import { readScenario } from '../../src/simulator/scenario/scenario-file.ts'
import { runScenario } from '../../src/simulator/scenario/scenario-run.ts'
import { HOUR, MINUTE } from '../../src/system/clock.ts'

/** The palette of Okabe and Ito without yellow and black. */
const PALETTE = ['#0072b2', '#009e73', '#56b4e9', '#cc79a7', '#d55e00', '#e69f00']

const axis = { title: '', scale: 'linear' } as const

/** A plot of lines from 0 to 10 with the names of these positions. */
const lines = (...positions: readonly number[]): Plot => ({
  title: '',
  about: '',
  kind: 'line',
  x: axis,
  y: axis,
  series: positions.map((i) => ({ name: `line ${i}`, points: Array.from({ length: 31 }, (_, n) => [n / 3, 2] as const) })),
})

describe('looks', () => {
  const looks = Array.from({ length: 35 }, (_, i) => lookOf(i))

  test('have the colours of Okabe and Ito, and that of the text', () => {
    expect(new Set(looks.map(({ colour }) => colour))).toEqual(new Set([...PALETTE, 'currentColor']))
  })

  test('of 35 lines differ, and those of the first five also without colours', () => {
    expect(new Set(looks.map(({ colour, dash }) => `${colour} ${dash.join()}`)).size).toBe(35)
    expect(new Set(looks.slice(0, 5).map(({ dash }) => dash.join())).size).toBe(5)
    expect(new Set(looks.slice(0, 6).map(({ mark }) => mark)).size).toBe(6)
  })

  test('are in the line and in the legend; marks instead of dashes in a plot of points', () => {
    const plot = lines(0, 1)
    const drawn = svgPlot(plot).markup
    expect(drawn.match(/stroke="#d55e00"[^>]* stroke-dasharray="7 3"/g)).toHaveLength(2)
    const points = svgPlot({ ...plot, kind: 'scatter' }).markup
    expect(points).not.toContain('stroke-dasharray')
    expect(points.split(lookOf(1).mark)).toHaveLength(1 + 31 + 1)
  })

  test('are the same for a name in all plots of a page', () => {
    const page = { title: '', about: '', table: { headings: [], rows: [] }, command: '', plots: [lines(0, 1), lines(1)] }
    expect(renderPage(page).match(/stroke="#d55e00"[^>]* stroke-dasharray="7 3"/g)).toHaveLength(3)
  })
})

describe('labels of a logarithmic axis', () => {
  test('are 1, 2 and 5 where there is room, else decades', () => {
    expect(logTicks({ from: 0.05, to: 200 }, 900, 40)).toEqual([0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200])
    expect(logTicks({ from: 0.05, to: 200 }, 300, 40)).toEqual([0.1, 1, 10, 100])
    expect(logTicks({ from: 1, to: 1e6 }, 120, 40)).toEqual([1, 100, 10_000, 1_000_000])
  })

  test('are the ends of a range without two such values', () => {
    expect(logTicks({ from: 3, to: 4 }, 900, 40)).toEqual([3, 4])
    expect(logTicks({ from: 7, to: 7 }, 900, 40)).toEqual([7, 7])
  })

  test('are never nearer than the gap', () => {
    for (let pixels = 100; pixels <= 1000; pixels += 30) {
      for (const [min, max] of [
        [0.01, 130],
        [1, 400_000],
        [0.2, 7],
        [1, 1e12],
      ] as const) {
        const at = logTicks({ from: min, to: max }, pixels, 40).map((tick) => (Math.log10(tick / min) / Math.log10(max / min)) * pixels)
        for (const [i, position] of at.slice(1).entries()) expect(position - (at[i] ?? 0)).toBeGreaterThanOrEqual(39.9)
      }
    }
  })
})

describe('outages', () => {
  const MAIL = 'duration = "5h"\n[mail]\nmessages = 10\nto = "far.example"\nover = "4h"\n'
  const scenarioOf = (rules: string) => readScenario(`${MAIL}${rules}`, 'x.toml')
  const outages = (rules: string) => outagesOf(scenarioOf(rules).script.rules, 5 * HOUR)

  test('are the times in which a rule makes hosts unreachable, up to the end', () => {
    expect(outages('[rule.down]\ndomain = "far.example"\nconnect = "refused"\nfrom = "1h"\nuntil = "2h"\n')).toEqual([
      { label: 'down at far.example', from: HOUR, until: 2 * HOUR },
    ])
    expect(outages('[rule.lost]\nat = "dns"\ndns = "servfail"\nfrom = "4h"\n')).toEqual([
      { label: 'lost', from: 4 * HOUR, until: 5 * HOUR },
    ])
    expect(outages('[rule.busy]\nat = "greeting"\nreply = "421 4.3.2 busy"\nuntil = "9h"\n')).toEqual([
      { label: 'busy', from: 0, until: 5 * HOUR },
    ])
  })

  test('are not rules without times, later rules, or replies to commands', () => {
    expect(outages('[rule.always]\nconnect = "refused"\n')).toEqual([])
    expect(outages('[rule.later]\nconnect = "refused"\nfrom = "6h"\n')).toEqual([])
    expect(outages('[rule.full]\nat = "rcpt"\nreply = "452 4.2.2 full"\nuntil = "2h"\n')).toEqual([])
  })

  test('are shaded in every plot of the page', async () => {
    const result = await runScenario(scenarioOf('[rule.down]\nconnect = "refused"\nfrom = "1h"\nuntil = "2h"\n'), { seed: 1 })
    const { plots } = scenarioPage(result, 'x', { headings: [], rows: [] }, 'x')
    for (const { shaded } of plots) expect(shaded).toEqual([{ label: 'down', from: HOUR, to: 2 * HOUR }])
  })

  test('are drawn within the plot, with their labels', () => {
    const shaded = [
      { label: 'down', from: 0, to: 1 },
      { label: 'lost', from: 1.2, to: 9 },
    ]
    const { markup } = svgPlot({ ...lines(0), shaded })
    const boxes = [...markup.matchAll(/<rect\s+x="([\d.]+)%"\s+width="([\d.]+)%"\s+height="100%"\s+fill="currentColor"/g)]
    expect(boxes.map(([, x, width]) => [Number(x), Number(width)])).toEqual([
      [0, 10],
      [12, 78],
    ])
    expect(markup).toMatch(/>down<[^]*>lost</)
  })
})

describe('a drawing', () => {
  test('has axes with units, all values as tooltips, and a description', () => {
    const { markup } = svgPlot({
      kind: 'line',
      title: 'Wait',
      about: 'Mean wait.',
      x: { title: 'age', scale: 'logarithmic', values: 'durations' },
      y: { title: 'recipients', scale: 'linear' },
      series: [
        { name: 'doubling', points: [5, 60, 720].map((minutes, i) => [minutes * MINUTE, 10 * i] as const) },
        { name: 'none', points: [] },
      ],
    })
    expect([...markup.matchAll(/text-anchor="middle">([^<]*)</g)].map(([, text]) => text)).toEqual([
      '5m',
      '15m',
      '1h',
      '4h',
      '12h',
      'age (logarithmic)',
    ])
    expect([...markup.matchAll(/text-anchor="end">([^<]*)</g)].map(([, text]) => text)).toEqual(['0', '5', '10', '15', '20'])
    expect(markup).toContain('>recipients<')
    expect(markup).toContain('<title>doubling: 10 at 1h</title>')
    expect(markup).toContain(
      '<desc>Mean wait. Horizontal axis: age. Vertical axis: recipients. doubling: 0 to 20 at 5m to 12h; none: none.</desc>',
    )
  })

  test('of times has labels in the zone, which is named, and dates at midnight', () => {
    const at = Date.parse('2026-11-28T21:10:00Z')
    const { markup } = svgPlot({
      kind: 'line',
      title: '',
      about: '',
      x: { title: 'time', scale: 'linear', values: { zone: () => ({ offset: 60, name: 'CET' }) } },
      y: { title: 'mail', scale: 'linear' },
      series: [{ name: 'a', points: [at, at + 4 * HOUR].map((one) => [one, 1] as const) }],
    })
    expect([...markup.matchAll(/text-anchor="middle">([^<]*)</g)].map(([, text]) => text)).toEqual([
      '22:30',
      '23:00',
      '23:30',
      '29 Nov',
      '00:30',
      '01:00',
      '01:30',
      '02:00',
      'time (UTC+1)',
    ])
    expect(markup).toContain('<title>a: 1 at 22:10</title>')
  })

  test('has at least four labels of times at any range and width', () => {
    const clock = { zone: () => ({ offset: 330, name: 'IST' }) }
    for (const hours of [1, 6, 24, 48, 7 * 24, 30 * 24])
      for (const minute of [0, 7, 31]) {
        const begin = Date.parse('2026-11-28T00:00:00Z') + minute * MINUTE
        const { ticks } = axisScale({ title: '', scale: 'linear', values: clock }, [begin, begin + hours * HOUR], {
          wide: 560,
          narrow: 260,
          gap: 46,
        })
        for (const width of ['wide', 'narrow'] as const) {
          const shown = ticks.filter((tick) => tick.shown === 'always' || tick.shown === width)
          expect(shown.length, `${hours} h, ${width}`).toBeGreaterThanOrEqual(4)
        }
      }
  })

  test('has labels of times that keep their distance over 400 days', () => {
    const day = 24 * HOUR
    const room = { wide: 560, narrow: 260, gap: 46 }
    const { ticks } = axisScale({ title: '', scale: 'linear', values: { zone: () => ({ offset: 0, name: 'UTC' }) } }, [0, 400 * day], room)
    for (const width of ['wide', 'narrow'] as const) {
      const shown = ticks.filter((tick) => tick.shown === 'always' || tick.shown === width)
      const places = shown.map(({ at }) => at * room[width]).toSorted((a, b) => a - b)
      expect(places.length).toBeGreaterThanOrEqual(3)
      for (const [i, at] of places.slice(1).entries()) expect(at - (places[i] ?? 0)).toBeGreaterThan(59)
    }
  })

  test('of counts has labels of whole numbers', () => {
    for (const changes of [
      [-1, 0],
      [-2, 0],
      [-7, 0],
      [0, 1, 2],
    ]) {
      const { ticks } = axisScale({ title: '', scale: 'linear', values: 'counts' }, changes, { wide: 560, narrow: 260, gap: 46 })
      expect(ticks.map(({ text }) => text).filter((text) => !/^-?\d+$/.test(text))).toEqual([])
      expect(ticks.length).toBeGreaterThan(1)
    }
  })

  test('has at least two labels of durations on a logarithmic axis, for any values', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 28 * 24 * HOUR }), { minLength: 1, maxLength: 9 }), (values) => {
        const { ticks } = axisScale({ title: '', scale: 'logarithmic', values: 'durations' }, values, { wide: 150, narrow: 150, gap: 32 })
        expect(ticks.length).toBeGreaterThanOrEqual(2)
      }),
      { examples: [[[28 * 24 * HOUR]]] },
    )
  })

  test('of lines has a table with the value of each line at each position', () => {
    const { markup } = svgPlot({
      title: 'Mail',
      about: '',
      kind: 'line',
      stepped: true,
      x: axis,
      y: { ...axis, includes: [0] },
      series: [
        { name: 'a', points: [[0, 5] as const, [1, 6] as const, [2, 6] as const] },
        { name: 'b', points: [[1, 7] as const, [2, 7] as const] },
      ],
    })
    const table = /<table>[^]*<\/table>/.exec(markup)?.[0] ?? ''
    expect([...table.matchAll(/<th scope="row">(.*?)<\/th>|<td>(.*?)<\/td>/g)].map(([, head, cell]) => head ?? cell)).toEqual([
      '0',
      '5',
      '–',
      '1',
      '6',
      '7',
    ])
    expect(markup).toContain('<title>1\na: 6\nb: 7</title>')
    expect(markup).toMatch(/text-anchor="end">0</)
  })

  test('of steps has no row for the end of the last step, after which there are no values', () => {
    const { markup } = svgPlot({
      title: 'Mail',
      about: '',
      kind: 'line',
      stepped: true,
      x: { ...axis, includes: [0, 3] },
      y: { ...axis, includes: [0] },
      series: [
        { name: 'a', points: [[0, 5] as const, [1, 6] as const, [2, 6] as const] },
        { name: 'b', points: [[0, 7] as const, [1, 7] as const] },
      ],
    })
    const table = /<table>[^]*<\/table>/.exec(markup)?.[0] ?? ''
    const rows = [...table.matchAll(/<th scope="row">(.*?)<\/th>|<td>(.*?)<\/td>/g)].map(([, head, cell]) => head ?? cell)
    expect(rows).toEqual(['0', '5', '7', '1', '6', '–'])
  })

  test('of bars has a row for each name, and begins at zero', () => {
    const { markup } = svgPlot({
      title: '',
      about: '',
      kind: 'bar',
      x: { title: 'attempts', scale: 'linear' },
      y: { title: '', scale: 'linear', values: ['fixed', 'reno'] },
      series: [{ name: 'attempts', points: [[100_000, 0] as const, [1000, 1] as const] }],
    })
    const widths = [...markup.matchAll(/width="([\d.]+)%" height="10"[^>]*><title>([^<]*)</g)]
    expect(widths.map(([, width, text]) => [width, text])).toEqual([
      ['100', 'fixed: 100,000'],
      ['1', 'reno: 1,000'],
    ])
  })

  test('of no points is nothing', () => {
    expect(svgPlot({ ...lines(0), series: [{ name: 'a', points: [] }] }).markup).toBe('')
  })

  test('stays within its axes for any values', () => {
    const value = fc.integer().map((n) => n / 1000)
    const scale = fc.constantFrom('linear' as const, 'logarithmic' as const)
    const values = fc.constantFrom('numbers' as const, 'durations' as const)
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 20 }), scale, values, (all, kind, unit) => {
        const { at, ticks } = axisScale({ title: '', scale: kind, values: unit }, all, { wide: 600, narrow: 260, gap: 40 })
        for (const share of [...all.map(at), ...ticks.map((tick) => tick.at)]) {
          expect(share).toBeGreaterThanOrEqual(0)
          expect(share).toBeLessThanOrEqual(1)
        }
        expect(ticks.length).toBeLessThan(40)
      }),
    )
  })
})
