import { TaskPage } from './task-page.tsx'

export default TaskPage
