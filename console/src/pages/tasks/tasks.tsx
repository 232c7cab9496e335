import { TasksPage } from './tasks-page.tsx'

export default TasksPage
