export const themes = ['system', 'light', 'dark'] as const
/** The time zone of the browser. */
export const localZone = 'local'
/** `day`: 24 Nov 2026, 14:08; `month`: Nov 24, 2026, 02:08 PM; `iso`: 2026-11-24 14:08. */
export const dateForms = ['day', 'month', 'iso'] as const
export const languages = ['en'] as const
/** Placeholder for the trace id in `trace_url`. */
export const tracePlace = '{trace_id}'

/** Length of the name of a saved view, in characters. */
export const taskViewName = { max: 40 } as const

/** Preferences of a user who never changed them. */
export const defaultPreferences = {
  theme: 'system',
  time_zone: localZone,
  date_form: 'day',
  language: 'en',
  trace_url: '',
  task_views: [],
} as const
